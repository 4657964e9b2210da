"""Reads one call, piece by piece, from text that arrives in any split.

What is taken beside the exact spelling: other white space, the envelope's keys in any order and with other keys
beside them, arguments under an alias, no arguments at all (``{}``), and arguments given as a JSON string that
holds the object's text. Nothing is repaired: anything else is a ``JsonError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Protocol

from interlock.families.base import Arguments, JsonEnvelope, Lit, Mark, Name, Piece, ToolCallSyntax
from interlock.families.wire.json_scan import JsonError, JsonScanner, skip_space

_NAME = re.compile(r"[^\s<>\[\](){}\"'|]*")


class CallParts:
    """What is known of a call so far."""

    __slots__ = ("_arguments", "has_arguments", "is_whole", "name")

    def __init__(self) -> None:
        self.name: str | None = None
        self.has_arguments = False  # their first character is known
        self.is_whole = False  # name and arguments are complete, whatever follows
        self._arguments: list[str] = []

    def add(self, text: str) -> None:
        self.has_arguments = True
        self._arguments.append(text)

    def read(self, scanner: JsonScanner, text: str, pos: int) -> int:
        """Let ``scanner`` read arguments, and add what it took, also when it then raises ``JsonError``."""
        end = pos
        try:
            end = scanner.feed(text, pos)
        except JsonError as error:
            end = error.at
            raise
        finally:
            if end > pos:
                self.add(text[pos:end])
        return end

    def take(self) -> str:
        """Arguments text that was not taken yet."""
        text = "".join(self._arguments)
        self._arguments.clear()
        return text


class _Reader(Protocol):
    done: bool

    def feed(self, text: str, pos: int) -> int:
        """Read from ``pos``; returns where reading ended. Raises ``JsonError``."""
        ...


class CallReader:
    """One call after its opener."""

    def __init__(self, syntax: ToolCallSyntax, tokens: frozenset[str]) -> None:
        """tokens: markers that arrive as tokens; the others are text."""
        self.parts = CallParts()
        self._tokens = tokens
        self._pieces = list(call_body(syntax))
        self._reader: _Reader | None = None

    @property
    def is_complete(self) -> bool:
        """Nothing but closing markers can follow."""
        return not self._pieces

    def feed(self, text: str, pos: int) -> int:
        """Read text from ``pos``; returns where reading ended: the end of ``text``, or of the call.

        Raises ``JsonError`` where the text is no call.
        """
        while pos < len(text) and self._pieces:
            if self._reader is None:
                self._reader = self._reader_of(self._pieces[0], pos)
            pos = self._reader.feed(text, pos)
            if self._reader.done:
                self._next_piece()
        return pos

    def feed_token(self, spelling: str) -> bool:
        """Take a marker token if one is expected here."""
        ahead = 1 if self._pieces and _is_space(self._pieces[0]) else 0
        if self._pieces[ahead : ahead + 1] != [Mark(spelling)]:
            return False
        for _ in range(ahead + 1):
            self._next_piece()
        return True

    def _next_piece(self) -> None:
        del self._pieces[0]
        self._reader = None
        if not self._pieces:
            if not self.parts.has_arguments:
                self.parts.add("{}")
            self.parts.is_whole = True

    def _reader_of(self, piece: Piece, pos: int) -> _Reader:
        match piece:
            case Mark(text=text) if text in self._tokens:
                raise JsonError(pos)
            case Mark(text=text) | Lit(text=text):
                return _SpaceReader() if text.isspace() else _ExactReader(text)
            case Name():
                return _NameReader(self.parts)
            case Arguments():
                return _ArgumentsReader(self.parts)
            case JsonEnvelope():
                return _EnvelopeReader(piece, self.parts)


def call_body(syntax: ToolCallSyntax) -> tuple[Piece, ...]:
    """The pieces between a call's opener and its closing markers."""
    first = next(i for i, piece in enumerate(syntax.call) if isinstance(piece, Mark)) + 1
    return syntax.call[first : _body_end(syntax)]


def call_closers(syntax: ToolCallSyntax) -> tuple[str, ...]:
    """What stands after a call's last piece with content, white space left out."""
    rest = [piece.text.strip() for piece in syntax.call[_body_end(syntax) :] if isinstance(piece, Mark | Lit)]
    return tuple(filter(None, rest))


def _body_end(syntax: ToolCallSyntax) -> int:
    return max(i for i, piece in enumerate(syntax.call) if not isinstance(piece, Mark | Lit)) + 1


def _is_space(piece: Piece) -> bool:
    return isinstance(piece, Lit) and piece.text.isspace()


class _SpaceReader:
    def __init__(self) -> None:
        self.done = False

    def feed(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        self.done = pos < len(text)
        return pos


class _ExactReader:
    def __init__(self, expected: str) -> None:
        self.done = False
        self._expected = expected

    def feed(self, text: str, pos: int) -> int:
        size = min(len(self._expected), len(text) - pos)
        if not self._expected.startswith(text[pos : pos + size]):
            raise JsonError(pos)
        self._expected = self._expected[size:]
        self.done = not self._expected
        return pos + size


class _NameReader:
    def __init__(self, parts: CallParts) -> None:
        self.done = False
        self._parts = parts
        self._name = ""

    def feed(self, text: str, pos: int) -> int:
        match = _NAME.match(text, pos)
        end = match.end() if match else pos
        self._name += text[pos:end]
        if end < len(text):
            if not self._name:
                raise JsonError(end)
            self._parts.name = self._name
            self.done = True
        return end


class _ArgumentsReader:
    def __init__(self, parts: CallParts) -> None:
        self.done = False
        self._parts = parts
        self._scanner = JsonScanner()

    def feed(self, text: str, pos: int) -> int:
        if not self._parts.has_arguments:
            pos = skip_space(text, pos)
            if pos < len(text) and text[pos] != "{":
                raise JsonError(pos)
        end = self._parts.read(self._scanner, text, pos)
        self.done = self._scanner.done
        return end


class _EnvelopeReader:
    def __init__(self, envelope: JsonEnvelope, parts: CallParts) -> None:
        self.done = False
        self._parts = parts
        self._name_key = envelope.name_key
        self._arguments_keys = (envelope.arguments_key, *envelope.argument_aliases)
        self._step: Callable[[str, int], int] = self._open
        self._scanner = JsonScanner()
        self._reading = False  # inside a key or a value: white space there is not ours to skip
        self._collected: list[str] = []
        self._key = ""
        self._arguments_read = False

    def feed(self, text: str, pos: int) -> int:
        while pos < len(text) and not self.done:
            if not self._reading:
                pos = skip_space(text, pos)
            if pos < len(text):
                pos = self._step(text, pos)
        return pos

    def _open(self, text: str, pos: int) -> int:
        return self._expect("{", text, pos, self._first_member)

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
            self._reading = False
            self._step = self._colon
        return pos

    def _colon(self, text: str, pos: int) -> int:
        return self._expect(":", text, pos, self._value)

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
            self._parts.name = name
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
        return self._end(pos) if text[pos] == "}" else self._expect(",", text, pos, self._member)

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

    def _expect(self, char: str, text: str, pos: int, then: Callable[[str, int], int]) -> int:
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
