"""What the visible answer must look like. One of these per request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

GrammarDialect = Literal["lark", "gbnf", "ebnf"]
GrammarEngine = Literal["llguidance", "xgrammar"]
"""What holds an answer to its grammar. ``xgrammar`` is an extra, and reads grammars and tags itself, as they came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """Free text: no constraint. asked: the request says so itself, which is no other format but keeps defaults off."""

    asked: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObjectFormat:
    """Any JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchemaFormat:
    """A JSON value valid against ``schema`` (JSON text, key order kept). ``param`` is the request field
    the schema came from, for error messages."""

    schema: str
    name: str | None = None
    strict: bool | None = None
    param: str = "response_format.json_schema.schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegexFormat:
    """The whole answer matches ``pattern`` (Rust regex syntax, anchored at both ends)."""

    pattern: str
    param: str = "structured_outputs.regex"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrammarFormat:
    """The whole answer is derived from the grammar."""

    source: str
    dialect: GrammarDialect
    param: str = "structured_outputs.grammar"
    engine: GrammarEngine = "llguidance"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceFormat:
    """The answer is exactly one of ``choices`` (bare strings)."""

    choices: tuple[str, ...]
    param: str = "structured_outputs.choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuralTagFormat:
    """Text with tags in it, as xgrammar and vLLM describe it: ``tag`` is the JSON text of an object with ``format``,
    or with ``structures`` and ``triggers``."""

    tag: str
    param: str = "response_format"
    engine: GrammarEngine = "llguidance"


OutputFormat = (
    TextFormat
    | JsonObjectFormat
    | JsonSchemaFormat
    | RegexFormat
    | GrammarFormat
    | ChoiceFormat
    | StructuralTagFormat
)
