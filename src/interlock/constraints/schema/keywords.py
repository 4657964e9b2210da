"""Every keyword of JSON Schema, one row each: value, dialects, and who holds it.

``docs/json-schema.md`` is generated from this table. A keyword that is not here is an annotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from interlock.constraints.schema.dialects import Dialect

Value = Literal[
    "any", "schema", "schemas", "schema map", "schema or schemas", "schema or names map", "number", "positive", "count",
    "boolean", "string", "names", "names map", "type", "list", "pattern map", "number or boolean",
]  # fmt: skip
Holder = Literal["grammar", "guard", "structure", "annotation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyword:
    """since, until: first and last dialect that knows it. holder: who enforces it. note: for the docs."""

    name: str
    value: Value
    holder: Holder = "grammar"
    since: Dialect = Dialect.DRAFT4
    until: Dialect = Dialect.DRAFT2020
    note: str = ""


_D4, _D6, _D7, _D19, _D20 = Dialect.DRAFT4, Dialect.DRAFT6, Dialect.DRAFT7, Dialect.DRAFT2019, Dialect.DRAFT2020

TABLE: Final[tuple[Keyword, ...]] = (
    Keyword(name="type", value="type"),
    Keyword(name="enum", value="list"),
    Keyword(name="const", value="any", since=_D6),
    Keyword(name="nullable", value="boolean", note="OpenAPI: beside `type`, adds `null`; an option switches it off"),
    Keyword(name="allOf", value="schemas"),
    Keyword(name="anyOf", value="schemas"),
    Keyword(name="oneOf", value="schemas", note="exactly one, also where branches overlap"),
    Keyword(name="not", value="schema"),
    Keyword(name="if", value="schema", since=_D7),
    Keyword(name="then", value="schema", since=_D7),
    Keyword(name="else", value="schema", since=_D7),
    Keyword(name="minLength", value="count", note="code points"),
    Keyword(name="maxLength", value="count", note="code points"),
    Keyword(
        name="pattern", value="string",
        note="ECMA 262 search; look-behind, back-references, and assertions inside some repeats are refused",
    ),
    Keyword(name="format", value="string", note="see the table of formats; the others are annotations"),
    Keyword(name="contentEncoding", value="any", holder="annotation", since=_D7),
    Keyword(name="contentMediaType", value="any", holder="annotation", since=_D7),
    Keyword(name="contentSchema", value="any", holder="annotation", since=_D19),
    Keyword(name="minimum", value="number"),
    Keyword(name="maximum", value="number"),
    Keyword(name="exclusiveMinimum", value="number or boolean", note="a boolean in draft 4"),
    Keyword(name="exclusiveMaximum", value="number or boolean", note="a boolean in draft 4"),
    Keyword(name="multipleOf", value="positive", note="exact in decimals"),
    Keyword(name="items", value="schema or schemas"),
    Keyword(name="prefixItems", value="schemas", since=_D20),
    Keyword(name="additionalItems", value="schema", note="beside a list of `items` only"),
    Keyword(name="minItems", value="count"),
    Keyword(name="maxItems", value="count"),
    Keyword(name="contains", value="schema", since=_D6),
    Keyword(name="minContains", value="count", since=_D19),
    Keyword(name="maxContains", value="count", since=_D19),
    Keyword(
        name="uniqueItems", value="boolean", note="grammar where the items are a small finite set, else guard",
    ),
    Keyword(name="unevaluatedItems", value="schema", since=_D19),
    Keyword(name="properties", value="schema map"),
    Keyword(name="required", value="names"),
    Keyword(name="additionalProperties", value="schema"),
    Keyword(name="patternProperties", value="pattern map"),
    Keyword(name="propertyNames", value="schema", since=_D6),
    Keyword(name="minProperties", value="count"),
    Keyword(name="maxProperties", value="count"),
    Keyword(name="dependentRequired", value="names map", since=_D19),
    Keyword(name="dependentSchemas", value="schema map", since=_D19),
    Keyword(name="dependencies", value="schema or names map", note="honoured in every dialect"),
    Keyword(name="unevaluatedProperties", value="schema", since=_D19),
    Keyword(name="$ref", value="string", holder="structure", note="up to draft 7 it hides its siblings"),
    Keyword(name="$dynamicRef", value="string", holder="structure", since=_D20),
    Keyword(name="$recursiveRef", value="string", holder="structure", since=_D19, until=_D19),
    Keyword(name="$schema", value="string", holder="structure"),
    Keyword(name="$id", value="string", holder="structure", note="`id` in draft 4"),
    Keyword(name="id", value="any", holder="structure", until=_D4),
    Keyword(name="$anchor", value="string", holder="structure", since=_D19),
    Keyword(name="$dynamicAnchor", value="string", holder="structure", since=_D20),
    Keyword(name="$recursiveAnchor", value="boolean", holder="structure", since=_D19, until=_D19),
    Keyword(name="$vocabulary", value="any", holder="structure", since=_D19),
    Keyword(name="$defs", value="schema map", holder="structure", note="honoured in every dialect"),
    Keyword(name="definitions", value="schema map", holder="structure"),
    Keyword(name="$comment", value="any", holder="annotation"),
    Keyword(name="title", value="any", holder="annotation"),
    Keyword(name="description", value="any", holder="annotation"),
    Keyword(name="default", value="any", holder="annotation"),
    Keyword(name="examples", value="any", holder="annotation"),
    Keyword(name="deprecated", value="any", holder="annotation"),
    Keyword(name="readOnly", value="any", holder="annotation"),
    Keyword(name="writeOnly", value="any", holder="annotation"),
    Keyword(name="discriminator", value="any", holder="annotation", note="OpenAPI"),
)  # fmt: skip

BY_NAME: Final = {row.name: row for row in TABLE}
BY_DIALECT: Final = {
    dialect: {row.name: row for row in TABLE if row.since <= dialect <= row.until} for dialect in Dialect
}
HOLDS_SCHEMAS: Final = {
    dialect: {name: row.value for name, row in rows.items() if "schema" in row.value or "map" in row.value}
    for dialect, rows in BY_DIALECT.items()
}


def keyword(name: str, dialect: Dialect) -> Keyword | None:
    """The row of ``name`` if ``dialect`` knows it."""
    return BY_DIALECT[dialect].get(name)
