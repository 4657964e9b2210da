"""A tool's arguments to rules, in syntaxes whose objects are tags.

``TaggedLowering``: the outermost object is a sequence of parameters; a parameter's string is raw text, any other
value is JSON. ``NestedTagLowering``: tags to any depth.

Raw text is read back by the types that the schema allows. So where a parameter may be a string and something else,
its strings are those that do not read as the other: no ``null``, where the schema allows null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.scalars import Scalars
from interlock.constraints.schema.graph import Value
from interlock.constraints.schema.lower.argument_syntaxes import (
    TEXT_KEYS,
    MarkParts,
    RawSpelling,
    RawStrings,
    TagSyntax,
    symbols,
    writable_keys,
)
from interlock.constraints.schema.lower.arrays import ArrayLowering
from interlock.constraints.schema.lower.object_keys import Pairs
from interlock.constraints.schema.lower.objects import ObjectLowering
from interlock.constraints.schema.lower.syntax import JsonSyntax
from interlock.constraints.schema.lower.values import ValueLowering
from interlock.constraints.schema.lower.writer import Symbols, Writer
from interlock.constraints.schema.numbers import text as number_text
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Problems, RefusedError
from interlock.constraints.schema.text import lang
from interlock.constraints.schema.text.derive import is_empty
from interlock.constraints.schema.text.ecma import search
from interlock.constraints.schema.text.emit import literal, terminal
from interlock.constraints.schema.text.nodes import Lang, Words
from interlock.core.argument_syntax import JsonType, NestedTagArguments, TaggedArguments
from interlock.core.schema_types import ALL_KINDS, SchemaTypes

_READS_AS = {
    "null": r"^\s*null\s*$",
    "boolean": r"^\s*(true|false)\s*$",
    "number": r"^\s*-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*$",
    "object": r"^\s*\{",
    "array": r"^\s*\[",
}
_MAY_PAD = '" "?'
"""The engine fails where a number that is an intersection of regexes can only be followed by a special token. A
blank that readers ignore keeps another way open."""
_TAG_KEYS = lang.both(TEXT_KEYS, lang.negate(lang.cat(lang.words(["/"]), lang.ANY)))
"""Keys of nested tags: a slash would close one."""
_JSON_TYPES: tuple[JsonType, ...] = ("number", "boolean", "null", "object", "array")


@cache
def _unlike(kinds: frozenset[str]) -> Lang:
    """Text that does not read as JSON of ``kinds``."""
    kinds = kinds | {"number"} if "integer" in kinds else kinds
    found = [search(pattern) for kind, pattern in _READS_AS.items() if kind in kinds]
    return lang.negate(lang.alt(found)) if found else lang.ANY


class TaggedLowering(ValueLowering):
    """Parameters as tags."""

    def __init__(
        self,
        algebra: Algebra,
        writer: Writer,
        json: JsonSyntax,
        options: SchemaOptions,
        problems: Problems,
        tags: TaggedArguments,
        marks: MarkParts,
        types: SchemaTypes,
    ) -> None:
        super().__init__(algebra, writer, json, options, problems)
        separator = symbols(writer, marks(tags.separator)) if tags.separator else ""
        outer = TagSyntax(Symbols(separator))
        pairs = _ParameterPairs(writer, outer, self.symbol, tags, marks, types, self)
        self._outermost = ObjectLowering(algebra, writer, outer, options, self.symbol, self.recorder, pairs)

    def json_of(self, value: Value, kind: JsonType) -> list[str]:
        """Symbols of the values of one JSON type, written as JSON."""
        scalars = self.algebra.scalars(value)
        outer, self.recorder.current = self.recorder.current, value
        try:
            return self._json_of(value, kind, scalars)
        finally:
            self.recorder.current = outer

    def _json_of(self, value: Value, kind: JsonType, scalars: Scalars) -> list[str]:
        match kind:
            case "object":
                return self._objects.lower(self.algebra.objects(value))
            case "array":
                return self._arrays.lower(self.algebra.arrays(value))
            case _:
                return self._scalars(_only(scalars, kind))


def _scalar_texts(scalars: Scalars, values: ValueLowering) -> list[str]:
    """Terminal expressions of scalars other than strings."""
    words = [
        (scalars.null, values.syntax.null),
        (True in scalars.bools, values.syntax.true),
        (False in scalars.bools, values.syntax.false),
    ]
    found = [word for present, word in words if present]
    if scalars.numbers:
        found.append(_number_expression(scalars, values.writer.terminal))
    return found


def _number_expression(scalars: Scalars, name: Callable[[str], str]) -> str:
    try:
        return number_text.terminal(scalars.numbers, name, integers_only=scalars.integer_only)
    except number_text.UnwritableError as error:
        raise RefusedError(str(error), keyword="multipleOf") from None


def _only(scalars: Scalars, kind: JsonType) -> Scalars:
    return replace(
        scalars,
        null=scalars.null and kind == "null",
        bools=scalars.bools if kind == "boolean" else frozenset(),
        numbers=scalars.numbers if kind == "number" else frozenset(),
        strings=scalars.strings if kind == "string" else lang.NONE,
    )


@dataclass(frozen=True, slots=True)
class _ParameterPairs(Pairs):
    """One parameter: key, type and value in tags."""

    tags: TaggedArguments
    marks: MarkParts
    types: SchemaTypes
    values: TaggedLowering

    def of(self, keys: Lang, value: Value) -> str:
        keys = writable_keys(keys, TEXT_KEYS)
        found = self._typed(keys, value) if self.tags.types else self._untyped(keys, value)
        if not found:
            raise RefusedError("no value of this parameter can be written", keyword="type")
        return found[0] if len(found) == 1 else self.writer.rule(" | ".join(found))

    def _typed(self, keys: Lang, value: Value) -> list[str]:
        strings = self.values.algebra.scalars(value).strings
        parts = self.marks(self.tags.value_close)
        close = f"{_MAY_PAD if parts[0][1] else ''} {symbols(self.writer, parts)}".strip()
        found = []
        by_word: dict[str, list[str]] = {}
        for kind, word in self.tags.types:
            if kind != "string":
                by_word.setdefault(word, []).extend(self.values.json_of(value, kind))
            elif not (strings == lang.NONE or is_empty(strings)):
                found.append(f"{self._head(keys, word)} {self._raw().text(strings)}")
        for word, options in by_word.items():
            if options:
                found.append(f"{self._head(keys, word)} {_choice(options, self.writer)} {close}")
        return found

    def _untyped(self, keys: Lang, value: Value) -> list[str]:
        scalars = self.values.algebra.scalars(value)
        has_strings = not (scalars.strings == lang.NONE or is_empty(scalars.strings))
        head, close = self._head(keys, ""), symbols(self.writer, self.marks(self.tags.value_close))
        if not has_strings:
            options = [symbol for kind in _JSON_TYPES for symbol in self.values.json_of(value, kind)]
            return [f"{head} {_choice(options, self.writer)} {close}"] if options else []
        strings = lang.both(scalars.strings, _unlike(self._read_kinds(keys)))
        found = [] if is_empty(strings) else [self._raw().text(strings)]
        # what may be text as well must end together with it: see the longest lexeme
        parts = self.marks(self.tags.value_close)
        found += [_followed(text, parts, self.writer) for text in _scalar_texts(scalars, self.values)]
        nested = [symbol for kind in ("object", "array") for symbol in self.values.json_of(value, kind)]
        found += [f"{symbol} {close}" for symbol in nested]
        return [f"{head} {_choice(found, self.writer)}"]

    def _read_kinds(self, keys: Lang) -> frozenset[str]:
        """The types by which the reader will read this parameter."""
        if isinstance(keys, Words) and len(keys.words) == 1:
            return self.types.property(next(iter(keys.words))).kinds
        return ALL_KINDS

    def _raw(self) -> RawStrings:
        return RawStrings(self.writer, self.marks, "", self.tags.value_close)

    def _head(self, keys: Lang, word: str) -> str:
        """Everything before the value; the key and the ordinary text around it are one lexeme."""
        before = self.marks(self.tags.key_open)
        middle = self.tags.type_open + word if self.tags.types else ""
        after = self.marks(middle + self.tags.key_close)
        opening = before[-1][0] if not before[-1][1] else ""
        closing = after[0][0] if not after[0][1] else ""
        key = self.writer.terminal(terminal(keys, RawSpelling(literal(opening), literal(closing))))
        head = symbols(self.writer, before[:-1] if opening else before)
        tail = symbols(self.writer, after[1:] if closing else after)
        return " ".join(filter(None, [head, key, tail]))


def _followed(text: str, parts: list[tuple[str, str]], writer: Writer) -> str:
    """The terminal expression ``text`` and what follows it; ordinary text that follows is in one lexeme with it."""
    (first, symbol), *rest = parts
    if symbol:
        return f"{writer.terminal(text)} {symbols(writer, parts)}"
    return f"{writer.terminal(f'({text}) /{literal(first)}/')} {symbols(writer, rest)}".strip()


def _choice(options: list[str], writer: Writer) -> str:
    options = list(dict.fromkeys(options))
    return options[0] if len(options) == 1 else writer.rule(" | ".join(options))


class NestedTagLowering(ValueLowering):
    """Everything is a tag. Where strings and containers are both allowed, only strings and scalars are written, and
    where objects and arrays are, only objects: an empty tag must read back as one thing.

    The rule of a value goes on to the key of its closing tag: where the mark is ordinary text, a string ends with
    it in one lexeme."""

    def __init__(
        self,
        algebra: Algebra,
        writer: Writer,
        options: SchemaOptions,
        problems: Problems,
        tags: NestedTagArguments,
        marks: MarkParts,
    ) -> None:
        syntax = TagSyntax(Symbols(""))
        super().__init__(algebra, writer, syntax, options, problems)
        self._marks = marks
        self._tags = tags
        self._leaving = marks(f"{tags.mark}</")
        self._strings = RawStrings(writer, marks, "", f"{tags.mark}</")
        self._writable = lang.ANY if any(symbol for _, symbol in self._leaving) else _free_of(tags.mark)
        pairs = _TagPairs(writer, syntax, self.symbol, tags.mark, marks)
        # the outermost object has no closing tag: it is no value
        self._objects, self._outermost = (
            ObjectLowering(algebra, writer, syntax, options, self.symbol, self.recorder, pairs)
            for _ in range(2)
        )
        self._arrays = ArrayLowering(
            algebra, writer, syntax, options, self._item, self.recorder, has_tagged_items=True
        )

    def symbol(self, value: Value) -> str:
        if value not in self._known:
            scalars = self.algebra.scalars(value)
            self.recorder.scalars(
                value, _kinds_of(scalars) | ({"string"} if not _no_strings(scalars) else set())
            )
        return super().symbol(value)

    def _item(self, value: Value) -> str:
        opening = symbols(self.writer, self._marks(f"{self._tags.mark}<{self._tags.item}>"))
        return f"{opening} {self.symbol(value)} {symbols(self.writer, [(f'{self._tags.item}>', '')])}"

    def _alternatives(self, value: Value) -> list[str]:
        scalars, objects = self.algebra.scalars(value), self.algebra.objects(value)
        arrays = self.algebra.arrays(value)
        if not _no_strings(scalars):
            beside = {"object": bool(objects), "array": bool(arrays)}
            return self._text(scalars, frozenset(kind for kind, present in beside.items() if present))
        nested = self._objects.lower(objects)
        if not objects:
            nested = self._arrays.lower(arrays)
        leave = symbols(self.writer, self._leaving)
        return list(dict.fromkeys([*self._scalars(scalars), *(f"{rule} {leave}" for rule in nested)]))

    def _scalars(self, scalars: Scalars) -> list[str]:
        return self._plain(scalars) if _no_strings(scalars) else self._text(scalars, frozenset())

    def _plain(self, scalars: Scalars) -> list[str]:
        """Scalars other than strings."""
        scalars = replace(scalars, strings=lang.NONE)
        if self._leaving[0][1]:
            leave = symbols(self.writer, self._leaving)
            return [f"{found} {leave}" for found in super()._scalars(scalars)]
        return [_followed(text, self._leaving, self.writer) for text in _scalar_texts(scalars, self)]

    def _numbers(self, scalars: Scalars) -> str:
        return f"{super()._numbers(scalars)} {_MAY_PAD}"

    def _text(self, scalars: Scalars, beside: frozenset[str]) -> list[str]:
        """Scalars with strings among them. beside: other types that the schema allows here."""
        kinds = _kinds_of(scalars) | beside
        strings = lang.both(scalars.strings, _unlike(kinds)) if kinds else scalars.strings
        strings = lang.both(strings, self._writable)
        plain = self._plain(scalars)
        return plain if is_empty(strings) else [*plain, self._strings.text(strings)]


def _free_of(text: str) -> Lang:
    return lang.negate(lang.cat(lang.ANY, lang.words([text]), lang.ANY))


def _no_strings(scalars: Scalars) -> bool:
    return scalars.strings == lang.NONE or is_empty(scalars.strings)


def _kinds_of(scalars: Scalars) -> frozenset[str]:
    found = {"null": scalars.null, "boolean": bool(scalars.bools), "number": bool(scalars.numbers)}
    return frozenset(kind for kind, present in found.items() if present)


@dataclass(frozen=True, slots=True)
class _TagPairs(Pairs):
    """``mark<k>value mark</k>``; the value's rule holds ``mark</``."""

    mark: str
    marks: MarkParts

    def of(self, keys: Lang, value: Value) -> str:
        keys = writable_keys(keys, _TAG_KEYS)
        *before, (bracket, _) = self.marks(self.mark + "<")
        opening = f"{symbols(self.writer, before)} {self._key(keys, literal(bracket))}".strip()
        return f"{opening} {self.symbol(value)} {self._key(keys, '')}"

    def _key(self, keys: Lang, before: str) -> str:
        return self.writer.terminal(terminal(keys, RawSpelling(before, literal(">"))))
