"""Reads parameters written as tags."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from interlock.core.argument_syntax import TaggedArguments
from interlock.core.schema_types import SchemaTypes
from interlock.families.wire import json_text
from interlock.families.wire.arguments.raw_value import is_json, is_text, value_text
from interlock.families.wire.call_parts import CallParts
from interlock.families.wire.json_scan import JsonError, skip_space
from interlock.families.wire.markers import held_back

_STRING = frozenset(("string",))
_MAX_HEAD = 4096  # characters of a key


class TaggedReader:
    def __init__(
        self, syntax: TaggedArguments, parts: CallParts, encode: Callable[[str], str], types: SchemaTypes
    ) -> None:
        self.done = False
        self._parts = parts
        self._types = types
        self._words = {word: kind for kind, word in syntax.types}
        self._unescape = html.unescape if syntax.escapes_keys else str
        self._open = encode(syntax.key_open.strip())
        self._middle = encode(syntax.type_open)
        self._head_end = _flexible(encode(syntax.key_close.strip()))
        self._close = encode(syntax.closer)
        self._pads = (syntax.key_close.endswith("\n"), syntax.value_close.startswith("\n"))
        self._read: Callable[[str, int], int] = self._between
        self._first = True
        self._kinds: frozenset[str] = _STRING
        self._value: list[str] = []
        self._line_break = ""  # may belong to the closer

    def feed(self, text: str, pos: int) -> int:
        while pos < len(text) and not self.done:
            before, state = pos, self._read
            pos = self._read(text, pos)
            if pos == before and self._read == state:
                break
        return pos

    def _between(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        rest = text[pos : pos + len(self._open)]
        if rest == self._open:
            self._read = self._head
            return pos + len(self._open)
        if self._open.startswith(rest):
            return pos
        self._parts.add("{}" if self._first else "}")
        self.done = True
        return pos

    def _head(self, text: str, pos: int) -> int:
        found = self._head_end.search(text, pos)
        if found is None:
            if len(text) - pos > _MAX_HEAD:
                raise JsonError(pos)
            return pos
        key, kind = text[pos : found.start()], None
        if self._middle:
            key, _, word = key.partition(self._middle)
            kind = self._words.get(word)
            if kind is None:
                raise JsonError(pos)
        key = self._unescape(key.strip())
        if not key or "\n" in key or any("\ud800" <= char <= "\udfff" for char in key):
            raise JsonError(pos)
        self._kinds = self._types.property(key).kinds if kind is None else frozenset((kind,))
        self._parts.add(("{" if self._first else ", ") + json_text.quote(key) + ": ")
        self._first = False
        self._value = []
        self._read = self._value_start
        return found.end()

    def _value_start(self, text: str, pos: int) -> int:
        if is_text(self._kinds):
            self._parts.add('"')
        self._read = self._in_value
        return pos + 1 if self._pads[0] and text[pos] == "\n" else pos

    def _in_value(self, text: str, pos: int) -> int:
        end = text.find(self._close, pos)
        stop = end if end >= 0 else held_back(text, pos, self._close)
        self._take(text[pos:stop])
        if end < 0:
            return stop
        if is_text(self._kinds):
            self._parts.add('"')
        elif self._words and not is_json("".join(self._value)):
            raise JsonError(end)
        else:
            self._parts.add(value_text("".join(self._value), self._kinds))
        self._line_break = ""
        self._read = self._between
        return end + len(self._close)

    def _take(self, text: str) -> None:
        """More of the value; a line break at its end may be the closer's."""
        text = self._line_break + text
        self._line_break = ""
        if self._pads[1] and text.endswith("\n"):
            text, self._line_break = text[:-1], "\n"
        if is_text(self._kinds):
            self._parts.add(json_text.quote(text)[1:-1])
        else:
            self._value.append(text)


def _flexible(text: str) -> re.Pattern[str]:
    """``text`` with any white space between two tags, or where it has some."""
    parts = re.split(r"\s+|(?<=>)(?=<)", text)
    return re.compile(r"\s*".join(map(re.escape, parts)))
