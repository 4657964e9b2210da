"""Reads one call, piece by piece, from text that arrives in any split.

What is taken beside the exact spelling: other white space, the envelope's keys in any order and with other keys
beside them, arguments under an alias, no arguments at all (``{}``), and arguments given as a JSON string that
holds the object's text. Nothing is repaired: anything else is a ``JsonError``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from interlock.core.schema_types import ToolTypes
from interlock.families.base import (
    Arguments,
    CallId,
    Header,
    JsonEnvelope,
    Lit,
    Mark,
    Name,
    Number,
    NumberedName,
    Piece,
    Recipient,
)
from interlock.families.wire.arguments.readers import arguments_reader
from interlock.families.wire.call_parts import CallParts, PieceReader
from interlock.families.wire.envelope import EnvelopeReader
from interlock.families.wire.json_scan import JsonError, skip_space
from interlock.families.wire.markers import held_back

_NAME = re.compile(r"[^\s<>\[\](){}\"'|\ud800-\udfff]*")
_DIGITS = re.compile(r"[0-9]*")
_ID = re.compile(r"[A-Za-z0-9_.:-]*")
_HEADER_CHARS = 400  # a header, and a numbered name, is no longer; until it ends, text that has none waits


class CallReader:
    """One call after its opener."""

    def __init__(
        self, pieces: tuple[Piece, ...], encode: Callable[[str], str], types: ToolTypes, *, known: bool = False
    ) -> None:
        """encode: markers as they arrive. types: what the declared tools say about their parameters. known: what has
        the name of no declared tool is no call."""
        self.parts = CallParts(types if known else None)
        self.is_complete = False  # nothing but closing markers can follow
        self._encode = encode
        self._types = types
        self._pieces = list(pieces)
        self._reader: PieceReader | None = None

    def feed(self, text: str, pos: int) -> int:
        """Read text from ``pos``; returns where reading ended: the end of ``text``, or of the call, or what must
        be given again with more text.

        Raises ``JsonError`` where the text is no call.
        """
        while pos < len(text) and not self.is_complete:
            reader = self._reader
            if reader is None:
                reader = self._reader = self._reader_of(self._pieces[0])
            pos = reader.feed(text, pos)
            if reader.done:
                self._next_piece()
            elif pos < len(text):
                break
        return pos

    def _next_piece(self) -> None:
        del self._pieces[0]
        self._reader = None
        if not self._pieces:
            self.is_complete = True
            if not self.parts.has_arguments:
                self.parts.add("{}")
            self.parts.is_whole = True

    def _reader_of(self, piece: Piece) -> PieceReader:
        parts = self.parts
        match piece:
            case Mark(text=text):
                return _FixedReader(self._encode(text.strip()))
            case Lit(text=text):
                return _SpaceReader() if text.isspace() else _FixedReader(self._encode(text))
            case Header() | Recipient():
                return _HeaderReader(self._next_mark())
            case Name(glued=glued):
                return _WordReader(_NAME, lambda word, end: parts.named(self._without(glued, word), end))
            case NumberedName():
                return _NumberedNameReader(piece, self._next_mark(), parts)
            case Number():
                return _WordReader(_DIGITS, lambda _text, _end: None)
            case CallId():
                return _WordReader(_ID, lambda text, _end: setattr(parts, "id", text), required=False)
            case Arguments(syntax=syntax):
                return arguments_reader(syntax, parts, self._encode, self._types)
            case JsonEnvelope():
                return EnvelopeReader(piece, parts)

    def _without(self, glued: tuple[str, ...], word: str) -> str:
        stems = (word.removesuffix(ending) for ending in glued if word not in self._types)
        return next((stem for stem in stems if stem in self._types), word)

    def _next_mark(self) -> str:
        following = next(piece.text for piece in self._pieces[1:] if isinstance(piece, Mark))
        return self._encode(following)


def is_bare_name(name: str) -> bool:
    """The reader of bare names takes ``name`` as a whole."""
    return bool(name) and _NAME.fullmatch(name) is not None


def call_body(call: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """The pieces between a call's opener, if it has one, and its closing markers."""
    first = next(index for index, piece in enumerate(call) if not isinstance(piece, Recipient))
    return call[first + isinstance(call[first], Mark) : _body_end(call)]


def call_closers(call: tuple[Piece, ...]) -> tuple[str, ...]:
    """What stands after a call's last piece with content, white space left out."""
    rest = [piece.text.strip() for piece in call[_body_end(call) :] if isinstance(piece, Mark | Lit)]
    return tuple(filter(None, rest))


def _body_end(call: tuple[Piece, ...]) -> int:
    return max(i for i, piece in enumerate(call) if not isinstance(piece, Mark | Lit)) + 1


class _SpaceReader:
    def __init__(self) -> None:
        self.done = False

    def feed(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        self.done = pos < len(text)
        return pos


class _FixedReader:
    """Exactly the characters of a text; white space in it and before it may be any."""

    def __init__(self, expected: str) -> None:
        self.done = False
        self._ends_in_space = expected != expected.rstrip()
        self._expected = "".join(expected.split())

    def feed(self, text: str, pos: int) -> int:
        while self._expected:
            pos = skip_space(text, pos)
            if pos == len(text):
                return pos
            if text[pos] != self._expected[0]:
                raise JsonError(pos)
            self._expected = self._expected[1:]
            pos += 1
        if self._ends_in_space:
            pos = skip_space(text, pos)
            self.done = pos < len(text)
        else:
            self.done = True
        return pos


class _HeaderReader:
    """Anything up to a mark that is not read itself, within so many characters."""

    def __init__(self, mark: str) -> None:
        self.done = False
        self._mark = mark
        self._left = _HEADER_CHARS

    def feed(self, text: str, pos: int) -> int:
        end = text.find(self._mark, pos)
        self.done = end >= 0
        stop = end if self.done else held_back(text, pos, self._mark)
        if stop - pos > self._left:
            raise JsonError(pos + self._left)
        self._left -= stop - pos
        return stop


class _WordReader:
    def __init__(
        self, pattern: re.Pattern[str], found: Callable[[str, int], None], *, required: bool = True
    ) -> None:
        self.done = False
        self._pattern = pattern
        self._found = found
        self._required = required
        self._word = ""

    def feed(self, text: str, pos: int) -> int:
        if not self._word:
            pos = skip_space(text, pos)
        match = self._pattern.match(text, pos)
        end = match.end() if match else pos
        self._word += text[pos:end]
        if end < len(text):
            if self._required and not self._word:
                raise JsonError(end)
            self._found(self._word, end)
            self.done = True
        return end


class _NumberedNameReader(_HeaderReader):
    """``functions.N:3`` up to the next mark."""

    def __init__(self, piece: NumberedName, mark: str, parts: CallParts) -> None:
        super().__init__(mark)
        self._piece = piece
        self._parts = parts
        self._text = ""

    def feed(self, text: str, pos: int) -> int:
        end = super().feed(text, pos)
        self._text += text[pos:end]
        if self.done:
            self._take(self._text.strip().removeprefix(self._piece.prefix), end)
        return end

    def _take(self, text: str, end: int) -> None:
        name, found, number = (part.strip() for part in text.rpartition(self._piece.separator))
        is_numbered = bool(found) and number.isdigit()
        if not is_numbered:
            name = text
        if not is_bare_name(name):
            raise JsonError(end)
        self._parts.named(name, end)
        if is_numbered:
            self._parts.id = f"{self._piece.prefix}{name}{self._piece.separator}{number}"
