"""Reads parameters written as tags."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from interlock.core.argument_syntax import TaggedArguments
from interlock.core.schema_types import SchemaTypes
from interlock.families.wire import json_text
from interlock.families.wire.arguments.raw_value import can_only_be_text, is_json, is_text, value_text
from interlock.families.wire.call_parts import CallParts
from interlock.families.wire.json_scan import JsonError, skip_space
from interlock.families.wire.markers import held_back, may_begin

_STRING = frozenset(("string",))
_SPECIAL = frozenset('"\\\n')
_MAX_HEAD = 4096  # characters of a key
_MAX_DEPTH = 200
_BRACKETS = {"object": "{}", "array": "[]"}


class TaggedReader:
    def __init__(
        self, syntax: TaggedArguments, parts: CallParts, encode: Callable[[str], str], types: SchemaTypes
    ) -> None:
        self.done = False
        self._parts = parts
        self._types = types
        self._words = {
            word: frozenset(kind for kind, own in syntax.types if own == word) for _, word in syntax.types
        }
        self._nested = {word: _BRACKETS[kind] for kind, word in syntax.nested}
        self._unescape = html.unescape if syntax.escapes_keys else str
        self._open = encode(syntax.key_open.strip())
        self._item_open = encode(syntax.item_open)
        self._middle = encode(syntax.type_open)
        self._head_end = _flexible(encode(syntax.key_close.strip()))
        self._close = encode(syntax.closer)
        self._pads = (syntax.key_close.endswith("\n"), syntax.value_close.startswith("\n"))
        self._read: Callable[[str, int], int] = self._between
        self._closers = ["}"]  # of the objects and lists that are open
        self._comma = "{"  # what stands in front of the next key or item
        self._kinds: frozenset[str] = _STRING
        self._streams = True  # the value is text, given on as it comes
        self._value: list[str] = []
        self._line_break = ""  # may belong to the closer
        self._inside = _OpenString(self._kinds)
        self._by_token = any("\ud800" <= char <= "\udfff" for char in self._close)

    def feed(self, text: str, pos: int) -> int:
        while pos < len(text) and not self.done:
            before, state = pos, self._read
            pos = self._read(text, pos)
            if pos == before and self._read == state:
                break
        return pos

    def _between(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        opener = self._item_open if self._closers[-1] == "]" else self._open
        if text.startswith(opener, pos):
            self._read = self._head
            return pos + len(opener)
        if pos == len(text) or may_begin(opener, text, pos):
            return pos
        if len(self._closers) == 1:
            self._parts.add("{}" if self._comma == "{" else "}")
            self.done = True
            return pos
        if text.startswith(self._close, pos):
            self._parts.add(self._closers.pop())
            self._comma = ", "
            return pos + len(self._close)
        if may_begin(self._close, text, pos):
            return pos
        raise JsonError(pos)

    def _head(self, text: str, pos: int) -> int:
        found = self._head_end.search(text, pos)
        if found is None:
            if len(text) - pos > _MAX_HEAD:
                raise JsonError(pos)
            return pos
        head, word = text[pos : found.start()], ""
        if self._closers[-1] == "]":
            head, word = "", head
        elif self._middle:
            head, _, word = head.partition(self._middle)
        if self._words and word not in self._words and word not in self._nested:
            raise JsonError(pos)
        key = "" if self._closers[-1] == "]" else self._key(head, pos)
        self._parts.add(self._comma + (json_text.quote(key) + ": " if key else ""))
        self._comma = ", "
        if word in self._nested:
            return self._open_nested(self._nested[word], pos, found.end())
        self._kinds = self._words[word] if self._words else self._types.property(key).kinds
        self._streams = is_text(self._kinds)
        self._value = []
        self._inside = _OpenString(self._kinds)
        self._read = self._value_start
        return found.end()

    def _key(self, text: str, at: int) -> str:
        key = self._unescape(text.strip())
        if not key or "\n" in key or any("\ud800" <= char <= "\udfff" for char in key):
            raise JsonError(at)
        return key

    def _open_nested(self, brackets: str, at: int, end: int) -> int:
        """The value is an object or a list of tags."""
        if len(self._closers) > _MAX_DEPTH:
            raise JsonError(at)
        self._parts.add(brackets[0])
        self._closers.append(brackets[1])
        self._comma = ""
        self._read = self._between
        return end

    def _value_start(self, text: str, pos: int) -> int:
        if self._streams:
            self._parts.add('"')
        self._read = self._in_value
        return pos + 1 if self._pads[0] and text[pos] == "\n" else pos

    def _in_value(self, text: str, pos: int) -> int:
        end = text.find(self._close, pos)
        stop = end if end >= 0 else held_back(text, pos, self._close)
        if stop > pos:
            self._take(text[pos:stop])
        if end < 0:
            return stop
        if self._inside.is_open and not self._line_break and not self._by_token:
            self._take(self._close)
            return end + len(self._close)
        if self._streams:
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
        if self._pads[1]:
            text = self._line_break + text
            self._line_break = "\n" if text[-1] == "\n" else ""
            text = text.removesuffix("\n")
        if self._streams:
            self._parts.add(json_text.escape(text))
            return
        self._value.append(text)
        self._inside.feed(text)
        if not self._words and can_only_be_text(self._value, self._kinds):
            self._streams = True
            self._parts.add('"' + json_text.escape("".join(self._value)))


class _OpenString:
    """Whether a value, if it is an object or a list, has arrived up to the middle of a string: there a closing tag is
    text. A line break shows that it is no JSON."""

    _MARKS = re.compile(r'\\(?s:.)?|["\n]')

    def __init__(self, kinds: frozenset[str]) -> None:
        self.is_open = False
        self._openers = "".join(char for kind, char in (("object", "{"), ("array", "[")) if kind in kinds)
        self._begun = False
        self._escapes = False

    def feed(self, text: str) -> None:
        if not self._begun:
            text = text.lstrip()
            if not text:
                return
            self._begun = True
            if text[0] not in self._openers:
                self._openers = ""
        if not self._openers or (not self._escapes and _SPECIAL.isdisjoint(text)):
            return
        start = 1 if self._escapes and text else 0
        self._escapes = self._escapes and not text
        for match in self._MARKS.finditer(text, start):
            if match[0] == '"':
                self.is_open = not self.is_open
            elif match[0] == "\n" and self.is_open:
                self.is_open, self._openers = False, ""
                return
            self._escapes = match[0] == "\\"


def _flexible(text: str) -> re.Pattern[str]:
    """``text`` with any white space between two tags, or where it has some."""
    parts = re.split(r"\s+|(?<=>)(?=<)", text)
    return re.compile(r"\s*".join(map(re.escape, parts)))
