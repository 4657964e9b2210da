"""Reads arguments written as literals: Gemma's bare keys, and Python's keyword arguments.

One machine with a stack of its own turns both into JSON, a character at a time, without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from interlock.families.wire import json_text
from interlock.families.wire.call_parts import CallParts
from interlock.families.wire.json_scan import JsonError, skip_space
from interlock.families.wire.markers import held_back, may_begin

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9_.+-]*")
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_BARE_KEY = re.compile(r"[^:=,{}\[\]()\"'\s\ud800-\udfff]*")
_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in "\"'"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "\n": ""}
_CODES = {"x": 2, "u": 4, "U": 8}
_SURROGATES = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_PAIR_SIZE = 12  # characters of \uD83D\uDE00

_Step = Callable[[str, int], int]


class _LiteralReader:
    """The common machine. ``_stack``: what closes each open object or list; ``)`` closes keyword arguments and is
    left in place."""

    def __init__(self, parts: CallParts, quote_mark: str) -> None:
        self.done = False
        self._parts = parts
        self._quote_mark = quote_mark  # "" if strings are written with ordinary quotes alone
        self._stack: list[str] = []
        self._read: _Step = self._value
        self._word = ""
        self._quote = ""
        self._then: _Step = self._after_value

    def feed(self, text: str, pos: int) -> int:
        size = len(text)
        while pos < size and not self.done:
            before, state = pos, self._read
            pos = state(text, pos)
            if pos == before and self._read == state and not self.done:
                break
        return pos

    # values

    def _value(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        char = text[pos]
        if char in "{[":
            return self._open(char, pos + 1)
        if char in "\"'":
            return self._open_string(char, pos + 1, self._end_value)
        if self._quote_mark and text.startswith(self._quote_mark, pos):
            return self._open_string(self._quote_mark, pos + len(self._quote_mark), self._end_value)
        if self._quote_mark and may_begin(self._quote_mark, text, pos):
            return pos
        if not _WORD.match(char) or not (char.isalnum() or char == "-"):
            raise JsonError(pos)
        self._word = ""
        self._read = self._in_word
        return pos

    def _in_word(self, text: str, pos: int) -> int:
        match = _WORD.match(text, pos)
        end = match.end() if match else pos
        self._word += text[pos:end]
        if end == len(text):
            return end
        word = _WORDS.get(self._word)
        if word is None and _NUMBER.fullmatch(self._word):
            word = self._word
        if word is None:
            raise JsonError(end)
        self._parts.add(word)
        self._read = self._after_value
        return end

    def _open(self, bracket: str, pos: int) -> int:
        self._parts.add(bracket)
        self._stack.append("}" if bracket == "{" else "]")
        self._read = self._first_key if bracket == "{" else self._first_item
        return pos

    def _first_item(self, text: str, pos: int) -> int:
        return self._first(text, pos, self._value)

    def _first_key(self, text: str, pos: int) -> int:
        return self._first(text, pos, self._key)

    def _first(self, text: str, pos: int, then: _Step) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] == self._stack[-1]:
            return self._close(pos)
        self._read = then
        return pos

    def _end_value(self) -> None:
        self._read = self._after_value

    def _after_value(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] == self._stack[-1]:
            return self._close(pos)
        if text[pos] != ",":
            raise JsonError(pos)
        self._parts.add(", ")
        self._read = self._value if self._stack[-1] == "]" else self._key
        return pos + 1

    def _close(self, pos: int) -> int:
        closer = self._stack.pop()
        self._parts.add("}" if closer == ")" else closer)
        self._read = self._after_value
        self.done = not self._stack
        return pos if closer == ")" else pos + 1

    # keys

    def _key(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        char = text[pos]
        if char in "\"'":
            return self._open_string(char, pos + 1, self._end_key)
        if self._quote_mark and text.startswith(self._quote_mark, pos):
            return self._open_string(self._quote_mark, pos + len(self._quote_mark), self._end_key)
        if self._quote_mark and may_begin(self._quote_mark, text, pos):
            return pos
        self._word = ""
        self._read = self._bare_key
        return pos

    def _bare_key(self, text: str, pos: int) -> int:
        match = _BARE_KEY.match(text, pos)
        end = match.end() if match else pos
        self._word += text[pos:end]
        if end == len(text):
            return end
        if not self._word:
            raise JsonError(end)
        self._parts.add(json_text.quote(self._word))
        self._read = self._colon
        return end

    def _end_key(self) -> None:
        self._read = self._colon

    def _colon(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] != ("=" if self._stack[-1] == ")" else ":"):
            raise JsonError(pos)
        self._parts.add(": ")
        self._read = self._value
        return pos + 1

    # strings

    def _open_string(self, quote: str, pos: int, then: Callable[[], None]) -> int:
        self._parts.add('"')
        self._quote, self._ended = quote, then
        self._read = self._raw_string if quote == self._quote_mark else self._string
        return pos

    def _raw_string(self, text: str, pos: int) -> int:
        end = text.find(self._quote, pos)
        stop = end if end >= 0 else held_back(text, pos, self._quote)
        if stop > pos:
            self._parts.add(json_text.escape(text[pos:stop]))
        if end < 0:
            return stop
        return self._close_string(end + len(self._quote))

    def _string(self, text: str, pos: int) -> int:
        match = _PLAIN[self._quote].match(text, pos)
        end = match.end() if match else pos
        if end > pos:
            self._parts.add(json_text.escape(text[pos:end]))
        if end == len(text):
            return end
        if text[end] == self._quote:
            return self._close_string(end + 1)
        self._read = self._escape
        return end

    def _close_string(self, pos: int) -> int:
        self._parts.add('"')
        self._ended()
        return pos

    def _escape(self, text: str, pos: int) -> int:
        """At a backslash."""
        if len(text) - pos < 2:
            return pos
        char = text[pos + 1]
        size = _CODES.get(char)
        if size is None:
            self._parts.add(json_text.escape(_ESCAPES.get(char, char if char in "\\/'\"" else "\\" + char)))
            self._read = self._string
            return pos + 2
        end = pos + 2 + size
        pair = char == "u" and text[pos + 2 : pos + 4].lower() in ("d8", "d9", "da", "db")
        if len(text) < (pos + _PAIR_SIZE if pair else end):
            return pos
        if pair and (match := _SURROGATES.match(text, pos)):
            self._parts.add(match[0])
            end = match.end()
        else:
            self._parts.add(json_text.escape(_character(text[pos + 2 : end], pos)))
        self._read = self._string
        return end


class BareKeyReader(_LiteralReader):
    """``{k:<|"|>text<|"|>,n:1}``. Strings and keys in ordinary quotes are taken too."""

    def __init__(self, parts: CallParts, quote_mark: str) -> None:
        super().__init__(parts, quote_mark)
        self._read = self._start

    def _start(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] != "{":
            raise JsonError(pos)
        return self._open("{", pos + 1)


class PythonReader(_LiteralReader):
    """``a=1, b="x"`` up to the parenthesis that closes the call."""

    def __init__(self, parts: CallParts) -> None:
        super().__init__(parts, "")
        self._read = self._start

    def _start(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        self._parts.add("{")
        self._stack.append(")")
        self._read = self._first_key
        return pos


def _character(digits: str, at: int) -> str:
    try:
        char = chr(int(digits, 16))
        char.encode()
    except (ValueError, OverflowError):
        raise JsonError(at) from None
    return char
