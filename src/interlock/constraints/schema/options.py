"""What the caller decides about a compile: policies and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from interlock.config import DEFAULT_SCHEMA_LIMITS, SchemaLimits


def _no_documents() -> Mapping[str, Any]:
    return MappingProxyType({})


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
    limits: SchemaLimits = DEFAULT_SCHEMA_LIMITS


GUARDED = SchemaOptions(guards=True)
"""Where an engine with guards runs and nobody says otherwise."""
