"""The scalar part of a schema: which nulls, booleans, numbers and strings it admits, as exact sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any

from interlock.constraints.literals import MAX_LITERAL_CHARS, too_long
from interlock.constraints.schema.algebra.data import scalar_points
from interlock.constraints.schema.dialects import Dialect
from interlock.constraints.schema.graph import ANYTHING, NEVER, Graph, Schema, Value
from interlock.constraints.schema.numbers import sets
from interlock.constraints.schema.numbers.sets import NumberSet
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Budget, RefusedError
from interlock.constraints.schema.text import lang
from interlock.constraints.schema.text.counts import guesses_counts
from interlock.constraints.schema.text.derive import is_empty
from interlock.constraints.schema.text.ecma import search
from interlock.constraints.schema.text.ecma_syntax import PatternError
from interlock.constraints.schema.text.formats import APPROXIMATE, language
from interlock.constraints.schema.text.nodes import Lang

_BOTH = frozenset({False, True})
_NUMBER_KEYWORDS = frozenset({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"})
_STRING_KEYWORDS = frozenset({"minLength", "maxLength", "pattern", "format"})


@dataclass(slots=True)  # not frozen: see ``graph.Schema``
class Scalars:
    """A set of scalar values. integer_only: numbers come from ``type: integer``, so none is written ``1.0``.
    approximate: strings are a part of what is meant, so that the complement is not known."""

    null: bool
    bools: frozenset[bool]
    numbers: NumberSet
    strings: Lang
    integer_only: bool = field(default=False, compare=False)
    approximate: bool = field(default=False, compare=False)

    def is_empty(self) -> bool:
        return not (self.null or self.bools or self.numbers) and is_empty(self.strings)


EVERYTHING = Scalars(True, _BOTH, sets.ALL, lang.ANY)
NOTHING = Scalars(False, frozenset(), sets.NOTHING, lang.NONE)


def both(left: Scalars, right: Scalars) -> Scalars:
    if left is EVERYTHING:
        return right
    return Scalars(
        left.null and right.null,
        left.bools & right.bools,
        sets.intersect(left.numbers, right.numbers),
        lang.both(left.strings, right.strings),
        left.integer_only or right.integer_only,
        left.approximate or right.approximate,
    )


def either(left: Scalars, right: Scalars) -> Scalars:
    return Scalars(
        left.null or right.null,
        left.bools | right.bools,
        sets.union(left.numbers, right.numbers),
        lang.either(left.strings, right.strings),
        left.integer_only and right.integer_only,
        left.approximate or right.approximate,
    )


def negate(scalars: Scalars) -> Scalars:
    if scalars.approximate:
        raise RefusedError("the negation of this format is not supported", keyword="format")
    return Scalars(
        not scalars.null,
        _BOTH - scalars.bools,
        sets.complement(scalars.numbers),
        lang.negate(scalars.strings),
    )


def types(schema: Schema, options: SchemaOptions) -> frozenset[str] | None:
    """The JSON types that ``type`` admits, ``None`` if it says nothing."""
    named = schema.get("type")
    if named is None:
        return None
    is_nullable = options.nullable and schema.get("nullable") is True
    if isinstance(named, str) and not is_nullable:
        return _one_type(named)
    out = {named} if isinstance(named, str) else set(named)
    if is_nullable:
        out.add("null")
    return frozenset(out)


@lru_cache(maxsize=128)
def _one_type(name: str) -> frozenset[str]:
    return frozenset({name})


class ScalarAlgebra:
    """Scalar sets of schemas and conjunctions, remembered."""

    def __init__(self, graph: Graph, options: SchemaOptions, budget: Budget) -> None:
        self._graph = graph
        self._options = options
        self._budget = budget
        self._known: dict[int, Scalars] = {}
        self._types: dict[int, frozenset[str] | None] = {}
        self._values: dict[Value, Scalars] = {ANYTHING: EVERYTHING, NEVER: NOTHING}
        self._negated: dict[int, Scalars] = {}
        self._open: set[int] = set()

    def types(self, schema: Schema) -> frozenset[str] | None:
        """See the function ``types``."""
        number = schema.number
        if number not in self._types:
            self._types[number] = types(schema, self._options)
        return self._types[number]

    def of_value(self, value: Value) -> Scalars:
        known = self._values.get(value)
        if known is not None:
            return known
        if len(value) == 1:
            (literal,) = value
            known = self._values[value] = self._literal(literal)
            return known
        known, part = EVERYTHING, ANYTHING
        for literal in sorted(value, key=abs):
            part |= {literal}
            found = self._values.get(part)
            if found is None:  # other values begin with the same literals
                found = self._values[part] = both(known, self._literal(literal))
            known = found
        return known

    def _literal(self, literal: int) -> Scalars:
        if literal > 0:
            return self.of(self._graph.schema(literal))
        if literal not in self._negated:
            self._negated[literal] = negate(self.of(self._graph.schema(literal)))
        return self._negated[literal]

    def of(self, schema: Schema) -> Scalars:
        known = self._known.get(schema.number)
        if known is not None:
            return known
        if schema.number in self._open:
            raise RefusedError(
                "the schema refers to itself without end", keyword="$ref", pointer=schema.pointer
            )
        self._open.add(schema.number)
        self._budget.spend()
        try:
            known = self._known[schema.number] = self._compute(schema)
        except sets.TooManyCellsError as error:
            raise RefusedError(str(error), pointer=schema.pointer, too_complex=True) from None
        finally:
            self._open.discard(schema.number)
        return known

    def _compute(self, schema: Schema) -> Scalars:
        if isinstance(schema.value, bool):
            return EVERYTHING if schema.value else NOTHING
        out = self._own(schema)
        if schema.is_plain:
            return out
        for target in self._graph.references(schema):
            out = both(out, self.of(target))
        for child in self._graph.children(schema, "allOf"):
            out = both(out, self.of(child))
        if schema.has("anyOf"):
            out = both(out, self._any(self._graph.children(schema, "anyOf")))
        if schema.has("oneOf"):
            out = both(out, self._one(out, self._graph.children(schema, "oneOf")))
        denied = self._graph.only(schema, "not")
        if denied is not None:
            out = both(out, negate(self.of(denied)))
        return self._conditional(schema, out)

    def _any(self, children: Iterable[Schema]) -> Scalars:
        out = NOTHING
        for child in children:
            out = either(out, self.of(child))
        return out

    def _one(self, within: Scalars, children: Iterable[Schema]) -> Scalars:
        """Exactly one, seen inside ``within``: what is empty there needs no complement."""
        parts = [both(within, self.of(child)) for child in children]
        out = NOTHING
        for index, part in enumerate(parts):
            rivals = [
                other for at, other in enumerate(parts) if at != index and not both(part, other).is_empty()
            ]
            # one by one, since the engine takes "x and none of these" several times faster than "any, but no two"
            out = either(out, both(part, negate(reduce(either, rivals))) if rivals else part)
        return out

    def _conditional(self, schema: Schema, out: Scalars) -> Scalars:
        condition = self._graph.only(schema, "if")
        if condition is None:
            return out
        branches = []
        for name, positive in (("then", True), ("else", False)):
            branch = self._graph.only(schema, name)
            tested = self.of(condition) if positive else negate(self.of(condition))
            branches.append(tested if branch is None else both(tested, self.of(branch)))
        return both(out, either(*branches)) if schema.has("then") or schema.has("else") else out

    def _own(self, schema: Schema) -> Scalars:
        """What the keywords of ``schema`` itself say, without its subschemas."""
        named = self.types(schema)
        out = EVERYTHING if named is None else _typed(named)
        for name in ("const", "enum"):
            if schema.has(name):
                values = [schema.value["const"]] if name == "const" else schema.value["enum"]
                _check_lengths(values, name, schema.pointer)
                out = both(out, _listed(values))
        if out.numbers and not schema.meant.keys().isdisjoint(_NUMBER_KEYWORDS):
            numbers = sets.intersect(out.numbers, _number_keywords(schema))
            out = Scalars(out.null, out.bools, numbers, out.strings, out.integer_only)
        if out.strings is not lang.NONE and not schema.meant.keys().isdisjoint(_STRING_KEYWORDS):
            strings = lang.both(out.strings, self._string_keywords(schema))
            partial = self._options.format_mode == "assert" and schema.get("format") in APPROXIMATE
            out = Scalars(out.null, out.bools, out.numbers, strings, out.integer_only, partial)
        return out

    def _string_keywords(self, schema: Schema) -> Lang:
        parts = []
        low, high = schema.get("minLength"), schema.get("maxLength")
        if low is not None or high is not None:
            parts.append(lang.length(int(low or 0), None if high is None else int(high)))
        pattern = schema.get("pattern")
        if pattern is not None:
            parts.append(pattern_language(pattern, f"{schema.pointer}/pattern", "pattern"))
        name = schema.get("format")
        if isinstance(name, str) and self._options.format_mode == "assert":
            found = language(name)
            if found is not None:
                parts.append(found)
        return lang.both(*parts) if parts else lang.ANY


@lru_cache(maxsize=128)
def _typed(named: frozenset[str]) -> Scalars:
    numbers = sets.ALL if "number" in named else sets.INTEGERS if "integer" in named else sets.NOTHING
    return Scalars(
        "null" in named,
        _BOTH if "boolean" in named else frozenset(),
        numbers,
        lang.ANY if "string" in named else lang.NONE,
        "integer" in named and "number" not in named,
    )


def pattern_language(pattern: str, pointer: str, keyword: str) -> Lang:
    """Raises ``RefusedError``."""
    try:
        found = search(pattern)
    except PatternError as error:
        raise RefusedError(str(error), keyword=keyword, pointer=pointer) from None
    if guesses_counts(found):
        raise RefusedError(
            "a count of parts that count characters, their own last one among them, has too many states",
            keyword=keyword,
            pointer=pointer,
        )
    return found


def _check_lengths(values: list[Any], keyword: str, pointer: str) -> None:
    for value in values:
        if isinstance(value, str) and len(value) > MAX_LITERAL_CHARS:
            raise RefusedError(
                too_long(value), keyword=keyword, pointer=f"{pointer}/{keyword}", too_complex=True
            )


def _listed(values: list[Any]) -> Scalars:
    null, bools, numbers, strings = scalar_points(values)
    return Scalars(null, bools, sets.points(numbers), lang.words(strings))


def _number_keywords(schema: Schema) -> NumberSet:
    out = sets.ALL
    draft4 = schema.dialect == Dialect.DRAFT4
    for name, strict, bound in (
        ("minimum", "exclusiveMinimum", sets.at_least),
        ("maximum", "exclusiveMaximum", sets.at_most),
    ):
        limit, strict_limit = schema.get(name), schema.get(strict)
        if limit is not None:
            is_open = draft4 and strict_limit is True
            out = sets.intersect(out, bound(sets.fraction(limit), open_=is_open))
        if strict_limit is not None and not isinstance(strict_limit, bool):
            out = sets.intersect(out, bound(sets.fraction(strict_limit), open_=True))
    step = schema.get("multipleOf")
    if step is not None:
        out = sets.intersect(out, sets.multiples(sets.fraction(step)))
    return out
