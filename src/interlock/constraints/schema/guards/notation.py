"""How values are written, as far as a guard must know: JSON, or the argument syntax of a model family. Markers are bytes,
special tokens in them spelt as ``marks.special_text`` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from interlock.core.argument_syntax import (
    ArgumentSyntax,
    BareKeyArguments,
    NestedTagArguments,
    PythonArguments,
    TaggedArguments,
)


class Json(msgspec.Struct, frozen=True, tag=True):
    """JSON text."""


class BareKeys(msgspec.Struct, frozen=True, tag=True):
    """See ``BareKeyArguments``."""

    quote: bytes


class Python(msgspec.Struct, frozen=True, tag=True):
    """See ``PythonArguments``."""

    quote: bytes


class Tags(msgspec.Struct, frozen=True, tag=True):
    """See ``TaggedArguments``. text_words: the types of parameters that are raw text; empty where none is said."""

    key_open: bytes
    key_close: bytes
    value_close: bytes
    separator: bytes
    type_open: bytes
    text_words: tuple[bytes, ...]

    @property
    def key_end(self) -> bytes:
        """What ends a key."""
        return self.type_open if self.text_words else self.key_close


class NestedTags(msgspec.Struct, frozen=True, tag=True):
    """See ``NestedTagArguments``."""

    mark: bytes
    item: bytes

    @property
    def leaving(self) -> bytes:
        """What ends every value; the name of its tag follows."""
        return self.mark + b"</"

    def raw(self, text: bytes) -> bytes:
        """A value so far without the beginning of what ends it."""
        end = self.leaving
        size = next(size for size in range(min(len(end), len(text)), -1, -1) if text.endswith(end[:size]))
        return text[: len(text) - size]

    def opening(self, name: bytes) -> bytes:
        return self.mark + b"<" + name + b">"


Notation = Json | BareKeys | Python | Tags | NestedTags
JSON: Final = Json()


def notation(syntax: ArgumentSyntax, spell: Callable[[str], bytes]) -> Notation:
    """spell: the bytes of a marker."""
    match syntax:
        case BareKeyArguments(quote=quote):
            return BareKeys(spell(quote))
        case PythonArguments(quote=quote):
            return Python(quote.encode())
        case NestedTagArguments(mark=mark, item=item):
            return NestedTags(spell(mark), item.encode())
        case TaggedArguments():
            return Tags(
                spell(syntax.key_open),
                spell(syntax.key_close),
                spell(syntax.value_close),
                spell(syntax.separator),
                spell(syntax.type_open),
                tuple(word.encode() for kind, word in syntax.types if kind == "string"),
            )
        case "json":
            return JSON


def has_brackets(notation: Notation) -> bool:
    """A whole document tells its end, unless it is a number or a word."""
    return isinstance(notation, Json | BareKeys)


def may_end(notation: Notation, mode: str, depth: int) -> bool:
    """Only what follows tells whether a document ends in ``mode``, inside so many containers. See ``State.may_end``."""
    if has_brackets(notation):
        return mode == "scalar" and not depth
    return mode == "start" or (mode == "after" and depth == 1)


def key_text(notation: Notation, key: str, *, is_outermost: bool, plain: bytes) -> bytes:
    """A key as far as it decides which one it is. plain: its spelling in JSON."""
    match notation:
        case BareKeys():
            return key.encode() + b":"
        case Python() if is_outermost:
            return key.encode() + b"="
        case Python():
            return value_text(notation, key, plain=plain)
        case Tags() if is_outermost:
            return key.encode() + notation.key_end
        case NestedTags():
            return notation.opening(key.encode())
        case _:
            return plain


def value_text(notation: Notation, value: str | bool | None, *, plain: bytes) -> bytes:
    """A string, what ends it included, or a word. plain: its spelling in JSON."""
    if not isinstance(value, str):
        return str(value).encode() if isinstance(notation, Python) else plain
    match notation:
        case BareKeys(quote=quote):
            return quote + value.encode() + quote
        case Python(quote=b"'"):
            return b"'" + plain[1:-1].replace(b'\\"', b'"').replace(b"'", b"\\'") + b"'"
        case NestedTags():
            return value.encode() + notation.leaving
        case _:
            return plain


def scalar_ends(notation: Notation) -> bytes:
    """The bytes that may follow a number or a word among others."""
    return b",]}" + (notation.mark[:1] if isinstance(notation, NestedTags) else b"")
