"""Argument syntaxes other than JSON: raw strings, bare keys, Python's literals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from interlock.constraints.schema.lower.writer import Symbols, Writer
from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.text import chars, lang
from interlock.constraints.schema.text.chars import Ranges
from interlock.constraints.schema.text.derive import is_empty
from interlock.constraints.schema.text.emit import char_class, literal, terminal
from interlock.constraints.schema.text.json_spelling import JsonSpelling
from interlock.constraints.schema.text.nodes import Lang, Words

MarkParts = Callable[[str], list[tuple[str, str]]]
"""A marker cut around special tokens: text and, for a special token, its symbol (else ``""``)."""

_NAME_CHARS = chars.subtract(chars.from_ranges([(0x21, chars.MAX)]), chars.of("\":=,{}[]()'<>&/\x7f"))
_INNER_CHARS = chars.union(_NAME_CHARS, chars.of(" :=,{}[]()'/"))
NAME_KEYS = lang.repeat(lang.one_of(_NAME_CHARS), 1, None)
"""Keys that every reader of bare keys takes."""
TEXT_KEYS = lang.either(
    lang.one_of(chars.subtract(_INNER_CHARS, chars.of(" "))),
    lang.cat(
        lang.one_of(chars.subtract(_INNER_CHARS, chars.of(" "))),
        lang.repeat(lang.one_of(_INNER_CHARS), 0, None),
        lang.one_of(chars.subtract(_INNER_CHARS, chars.of(" "))),
    ),
)
"""Keys that can stand inside a tag."""


@dataclass(frozen=True, slots=True)
class RawSpelling:
    """Every character as itself. opening, closing: regexes around the whole."""

    opening: str = ""
    closing: str = ""

    def chars(self, ranges: Ranges) -> str:
        return "(?s:.)" if ranges == chars.ALL else char_class(ranges)


@dataclass(frozen=True, slots=True)
class _SingleQuoted:
    """JSON's escapes between single quotes, as Python reads them."""

    after: str = ""
    opening: str = "\\x27"

    @property
    def closing(self) -> str:
        return f"\\x27{self.after}"

    def chars(self, ranges: Ranges) -> str:
        special = chars.of("'\"")
        parts = []
        rest = chars.subtract(ranges, special)
        if rest:
            parts.append(JsonSpelling(escapes=False).chars(rest))
        if chars.contains(ranges, ord('"')):
            parts.append("\\x22")
        if chars.contains(ranges, ord("'")):
            parts.append("\\\\\\x27")
        return parts[0] if len(parts) == 1 else f"({'|'.join(parts)})"


def writable_keys(keys: Lang, allowed: Lang) -> Lang:
    """The keys of ``keys`` that a syntax can write. Raises ``RefusedError`` if there are none, or if one that is
    named is among those it cannot."""
    found = lang.both(keys, allowed)
    if is_empty(found):
        name = repr(min(keys.words)) if isinstance(keys, Words) and keys.words else "these keys"
        raise RefusedError(f"the model's call format cannot write the key {name}", keyword="properties")
    return found


class RawStrings:
    """Strings without quotes of JSON: raw text between two marks."""

    def __init__(self, writer: Writer, marks: MarkParts, before: str, after: str) -> None:
        self._writer = writer
        self._before = marks(before)
        self._after = marks(after)
        self._closer = after.strip()
        self._marked = any(symbol for _, symbol in self._after)

    def text(self, strings: Lang) -> str:
        """Symbols of one string of ``strings``, its marks included. Raises ``RefusedError``."""
        if not self._marked:
            inside = lang.cat(lang.ANY, lang.words([self._closer]), lang.ANY)
            strings = lang.both(strings, lang.negate(inside))
        if is_empty(strings):
            raise RefusedError(f"no allowed string is free of {self._closer!r}, which ends it", keyword="type")
        opening = self._before[-1][0] if self._before and not self._before[-1][1] else ""
        closing = self._after[0][0] if self._after and not self._after[0][1] else ""
        if strings == lang.EMPTY and not (opening or closing):
            body = ""
        else:
            body = self._writer.terminal(terminal(strings, RawSpelling(literal(opening), literal(closing))))
        head = self._before[:-1] if opening else self._before
        tail = self._after[1:] if closing else self._after
        return " ".join(filter(None, [symbols(self._writer, head), body, symbols(self._writer, tail)]))


def symbols(writer: Writer, parts: list[tuple[str, str]]) -> str:
    """Fixed text in symbols."""
    return " ".join(symbol or writer.terminal(f"/{literal(text)}/") for text, symbol in parts)


@dataclass(frozen=True, slots=True)
class BareKeySyntax:
    """``{k:<|"|>text<|"|>,n:1}``."""

    strings: RawStrings
    object_open: str = '"{"'
    object_close: str = '"}"'
    array_open: str = '"["'
    array_close: str = '"]"'
    item_separator: str = '","'
    null: str = '"null"'
    true: str = '"true"'
    false: str = '"false"'

    def key(self, keys: Lang) -> str:
        return terminal(writable_keys(keys, NAME_KEYS), RawSpelling(closing=":"))

    def string(self, lang_: Lang) -> str:
        return Symbols(self.strings.text(lang_))


@dataclass(frozen=True, slots=True)
class PythonSyntax:
    """Literals: ``{"k": [True, None]}``."""

    quote: str
    object_open: str = '"{"'
    object_close: str = '"}"'
    array_open: str = '"["'
    array_close: str = '"]"'
    item_separator: str = '", "'
    null: str = '"None"'
    true: str = '"True"'
    false: str = '"False"'

    def key(self, keys: Lang) -> str:
        return self._spell(keys, literal(": "))

    def string(self, lang_: Lang) -> str:
        return self._spell(lang_, "")

    def _spell(self, lang_: Lang, after: str) -> str:
        spelling = JsonSpelling(escapes=False, after=after) if self.quote == '"' else _SingleQuoted(after)
        return terminal(lang_, spelling)


@dataclass(frozen=True, slots=True)
class KeywordSyntax(PythonSyntax):
    """The outermost object of Python's arguments: ``a=1, b=2``."""

    object_open: str = field(default=Symbols(""))
    object_close: str = field(default=Symbols('""'))

    def key(self, keys: Lang) -> str:
        return terminal(writable_keys(keys, NAME_KEYS), RawSpelling(closing=literal("=")))


@dataclass(frozen=True, slots=True)
class TagSyntax:
    """Objects, and arrays if they are nested, as nothing but tags one after the other."""

    item_separator: str
    object_open: str = field(default=Symbols(""))
    object_close: str = field(default=Symbols('""'))
    array_open: str = field(default=Symbols(""))
    array_close: str = field(default=Symbols('""'))
    null: str = '"null"'
    true: str = '"true"'
    false: str = '"false"'

    def key(self, keys: Lang) -> str:
        return terminal(writable_keys(keys, TEXT_KEYS), RawSpelling())

    def string(self, lang_: Lang) -> str:
        return terminal(lang_, RawSpelling())
