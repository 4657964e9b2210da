"""What the caller decides about a compile: policies and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal


def _no_documents() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on blow-up. A schema that exceeds one is refused, in bounded time.

    alternatives: of one normal form. multiplied: more alternatives than these are kept as choices where that is
    possible, not multiplied out. work: steps of the algebra for one schema. rules: of the grammar.
    schema_nodes, schema_depth: of the schema itself. grammar_chars: of the lowered text.
    """

    alternatives: int = 400
    multiplied: int = 64
    work: int = 200_000
    rules: int = 20_000
    schema_nodes: int = 250_000
    schema_depth: int = 200
    grammar_chars: int = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaOptions:
    """open_objects, property_order: see ``core.constraint.JsonValue``. format_mode ``annotation`` switches all
    formats off. guards: keywords that no grammar holds may be left to a guard at run time.
    nullable: OpenAPI's ``nullable: true`` beside ``type`` adds ``null``.
    documents: other schemas that ``$ref`` may name, by URI; there is no network access."""

    open_objects: bool = False
    property_order: Literal["declared", "any"] = "declared"
    format_mode: Literal["assert", "annotation"] = "assert"
    guards: bool = False
    nullable: bool = True
    item_separator: str = ", "
    key_separator: str = ": "
    flexible_whitespace: bool = False
    documents: Mapping[str, Any] = field(default_factory=_no_documents, hash=False)
    limits: Limits = Limits()
