"""Reads a JSON object that holds a call's name and arguments."""

from __future__ import annotations

import json
from collections.abc import Callable

from interlock.families.base import JsonEnvelope
from interlock.families.wire.call_parts import CallParts
from interlock.families.wire.json_scan import JsonError, JsonScanner, skip_space


class EnvelopeReader:
    """Reads the object; its arguments are passed on as they come."""

    def __init__(self, envelope: JsonEnvelope, parts: CallParts) -> None:
        self.done = False
        self._parts = parts
        self._name_key = envelope.name_key
        self._name_first = envelope.name_first
        self._arguments_keys = (envelope.arguments_key, *envelope.argument_aliases)
        self._step: Callable[[str, int], int] = self._open
        self._scanner = JsonScanner()
        self._reading = False  # inside a key or a value: white space there is not ours to skip
        self._collected: list[str] = []
        self._key = ""
        self._arguments_read = False

    def feed(self, text: str, pos: int) -> int:
        size = len(text)
        while pos < size and not self.done:
            if not self._reading:
                pos = skip_space(text, pos)
            if pos < size:
                pos = self._step(text, pos)
        return pos

    def _open(self, text: str, pos: int) -> int:
        return self._expected("{", text, pos, self._first_member)

    def _first_member(self, text: str, pos: int) -> int:
        return self._end(pos) if text[pos] == "}" else self._member(text, pos)

    def _member(self, text: str, pos: int) -> int:
        if text[pos] != '"':
            raise JsonError(pos)
        self._begin(self._in_key)
        return pos

    def _in_key(self, text: str, pos: int) -> int:
        pos = self._collect(text, pos)
        if self._scanner.done:
            self._key = json.loads("".join(self._collected))
            if self._name_first and self._parts.name is None and self._key != self._name_key:
                raise JsonError(pos)
            self._reading = False
            self._step = self._colon
        return pos

    def _colon(self, text: str, pos: int) -> int:
        return self._expected(":", text, pos, self._value)

    def _value(self, text: str, pos: int) -> int:
        char = text[pos]
        if self._key == self._name_key:
            if self._parts.name is not None or char != '"':
                raise JsonError(pos)
            self._begin(self._in_name)
        elif self._key in self._arguments_keys:
            if self._arguments_read or char not in '{"':
                raise JsonError(pos)
            self._arguments_read = True
            self._begin(self._in_arguments if char == "{" else self._in_quoted_arguments)
        else:
            self._begin(self._in_other)
        return pos

    def _in_name(self, text: str, pos: int) -> int:
        end = self._collect(text, pos)
        if self._scanner.done:
            name = json.loads("".join(self._collected))
            if not name or any("\ud800" <= char <= "\udfff" for char in name):
                raise JsonError(end)
            self._parts.named(name, end)
            self._end_value()
        return end

    def _in_arguments(self, text: str, pos: int) -> int:
        end = self._parts.read(self._scanner, text, pos)
        if self._scanner.done:
            self._end_value()
        return end

    def _in_quoted_arguments(self, text: str, pos: int) -> int:
        end = self._collect(text, pos)
        if self._scanner.done:
            self._parts.add(_object_text(json.loads("".join(self._collected)), end))
            self._end_value()
        return end

    def _in_other(self, text: str, pos: int) -> int:
        end = self._scanner.feed(text, pos)
        if self._scanner.done:
            self._end_value()
        return end

    def _after(self, text: str, pos: int) -> int:
        return self._end(pos) if text[pos] == "}" else self._expected(",", text, pos, self._member)

    def _end(self, pos: int) -> int:
        if self._parts.name is None:
            raise JsonError(pos)
        self.done = True
        return pos + 1

    def _begin(self, step: Callable[[str, int], int]) -> None:
        self._scanner = JsonScanner()
        self._reading = True
        self._collected = []
        self._step = step

    def _end_value(self) -> None:
        self._reading = False
        self._step = self._after
        self._parts.is_whole = self._parts.name is not None and self._arguments_read

    def _collect(self, text: str, pos: int) -> int:
        end = self._scanner.feed(text, pos)
        self._collected.append(text[pos:end])
        return end

    def _expected(self, char: str, text: str, pos: int, then: Callable[[str, int], int]) -> int:
        if text[pos] != char:
            raise JsonError(pos)
        self._step = then
        return pos + 1


def _object_text(text: str, at: int) -> str:
    """``text`` if it is one JSON object and can be sent as UTF-8."""
    text = text.strip()
    scanner = JsonScanner()
    try:
        end = scanner.feed(text, 0) if text.startswith("{") else 0
        text.encode()
    except (JsonError, UnicodeEncodeError):
        raise JsonError(at) from None
    if not scanner.done or end != len(text):
        raise JsonError(at)
    return text
