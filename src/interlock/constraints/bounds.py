"""All bounds on what a constraint may cost, as the table of ``docs/json-schema.md`` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from interlock.config import CompileConfig, EngineConfig, SchemaLimits
from interlock.constraints import literals, walk
from interlock.constraints.providers import llguidance_limits
from interlock.constraints.schema import resources
from interlock.constraints.schema.algebra import object_keywords, objects, presence
from interlock.constraints.schema.docs import between
from interlock.constraints.schema.lower import (
    arrays,
    contains,
    contains_automaton,
    object_chain,
    object_choices,
    object_room,
    object_set,
    writer,
)
from interlock.constraints.schema.numbers import modulo, sets
from interlock.constraints.schema.numbers import text as number_text
from interlock.constraints.schema.text import ecma, ecma_syntax

BEGIN, END = "<!-- generated bounds: begin -->", "<!-- generated bounds: end -->"


class Bound(NamedTuple):
    """beyond: what happens to a constraint that goes beyond it. option: what sets it."""

    name: str
    default: int | float
    beyond: str = "refused"
    option: str = "fixed"


def bounds() -> Iterator[Bound]:
    """Those that an option sets first."""
    yield from _settable(SchemaLimits)
    yield from _settable(CompileConfig, "; four times as many by the clock")
    yield from _FIXED


def table() -> str:
    """Markdown."""
    rows = ["| bound | default | option | beyond it |", "|---|---|---|---|"]
    rows += [f"| {row.name} | {_number(row.default)} | {row.option} | {row.beyond} |" for row in bounds()]
    return "\n".join(rows) + "\n"


def with_table(page: str) -> str:
    """``page`` with the text between the marks replaced by the table."""
    return between(page, BEGIN, END, table())


def _settable(cls: type, more: str = "") -> Iterator[Bound]:
    for limit in fields(cls):
        if option := limit.metadata.get("option"):
            name = limit.metadata["help"].removesuffix(".")
            yield Bound(f"{name[0].lower()}{name[1:]}{more}", _default(cls, limit.name), option=f"`{option}`")


def _default(cls: type, name: str) -> Any:
    (default,) = [item.default for item in fields(cls) if item.name == name]
    return default


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


_FIXED = (
    Bound("bytes of memory that one constraint may take to compile", _default(CompileConfig, "memory_bytes")),
    Bound("seconds that its grammar may take in the engine, over the model's vocabulary", _default(EngineConfig, "grammar_compile_s")),
    Bound("characters of one constraint, all its schemas together", walk.MAX_SPEC_CHARS),
    Bound("characters of one fixed text, such as a `const` or a key", literals.MAX_LITERAL_CHARS),
    Bound("bytes that every answer must begin with", llguidance_limits.MAX_FORCED_BYTES),
    Bound("schemas within a schema", resources.MAX_SUBSCHEMAS),
    Bound("levels of schemas within schemas", resources.MAX_DEPTH),
    Bound("rules of the grammar of one schema", writer.MAX_RULES),
    Bound("characters of that grammar", writer.MAX_GRAMMAR_CHARS),
    Bound(
        "alternatives of an object that come from one conjunction",
        object_keywords.MAX_MULTIPLIED,
        "kept as choices where that is possible",
    ),
    Bound("such choices and keys that they speak of, of one object", object_keywords.MAX_TRACKED),
    Bound("kinds of values of one key that such choices tell apart", object_choices.MAX_KINDS),
    Bound("alternatives of required keys, of one object", presence.MAX_TERMS),
    Bound("ways in which the patterns of keys of one object overlap", objects.MAX_CELLS),
    Bound(
        "keys, choices and counts that one object keeps track of, in bits",
        object_set.BITS,
        "declared order; refused where that does not do",
    ),
    Bound("optional keys of one object in a row, in declared order", object_chain.MAX_RUN),
    Bound("optional keys of one object, in any order", object_set.MAX_OPTIONAL),
    Bound("named keys that are counted beside undeclared ones", object_room.MAX_COUNT),
    Bound("keys that `minProperties` and `maxProperties` count", object_room.MAX_COUNTER),
    Bound("items that one `contains` counts", contains.MAX_COUNTED),
    Bound("items of an array beside `contains`", contains.MAX_LOOP),
    Bound("`contains` of one array", contains_automaton.MAX_KINDS),
    Bound("states of several `contains`", contains_automaton.MAX_STATES),
    Bound("steps between these states", contains_automaton.MAX_STEPS),
    Bound("values of items that `uniqueItems` tells apart in the grammar", arrays.MAX_DISTINCT, "left to a guard"),
    Bound("values of items of which two must be equal", arrays.MAX_REPEATABLE),
    Bound("pieces of a set of numbers", sets.MAX_CELLS),
    Bound("pairs of such pieces where two sets meet", sets.MAX_PAIRS),
    Bound("prime power modulo which `multipleOf` counts", modulo.MAX_MODULUS),
    Bound("endings of the multiples of `multipleOf`", number_text.MAX_SUFFIXES),
    Bound("parts of a `pattern`, written out", ecma.MAX_SIZE),
    Bound("groups within groups of a `pattern`", ecma_syntax.MAX_DEPTH),
)  # fmt: skip
