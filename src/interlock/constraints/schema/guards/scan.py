"""Follow a JSON document byte by byte and notice the byte that completes a repetition.

States are immutable: going back is keeping an old one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from interlock.constraints.schema.guards.plan import GuardPlan, Nodes
from interlock.constraints.schema.guards.seen import Seen

Mode = Literal[
    "value", "string", "string escape", "scalar", "after", "key", "key string", "key escape", "colon", "end"
]

_SPACE: Final = b" \t\n\r"
_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"\\,:'
_MAX_ECHOES: Final = 16
_RESPELT: Final = re.compile(rb"[0-9][.eE]|-0|\\\\")  # of numbers and characters
_SCALAR: Final = frozenset(b"-+.0123456789eEtrufalsn")


class ScanError(Exception):
    """The text is no JSON document."""


class RepetitionError(ScanError):
    """An item or a key came a second time where that is forbidden."""


class Frame(msgspec.Struct, frozen=True):
    """An open array or object. seen: its items or keys so far, in canonical form, where they must differ.
    start: where the current item or key begins in the document. texts: the items so far as they are spelt. plain: none
    of them has a part that is often spelt otherwise."""

    nodes: Nodes
    is_array: bool
    checked: bool
    seen: Seen = Seen()
    index: int = 0
    start: int = 0
    key: str = ""
    texts: tuple[bytes, ...] = ()
    plain: bool = True


class State(msgspec.Struct, frozen=True):
    """A place in a document. text: the part of it that is still needed, from byte ``base`` on."""

    mode: Mode = "value"
    frames: tuple[Frame, ...] = ()
    text: bytes = b""
    base: int = 0

    @property
    def watchful(self) -> bool:
        """Something written now could repeat something."""
        return any(frame.checked and frame.seen.count for frame in self.frames)

    @property
    def progress(self) -> tuple[int, ...]:
        """Changes when a watched item or key is complete, or its container is closed."""
        return tuple(frame.seen.count for frame in self.frames if frame.checked)

    def ends(self) -> list[bytes] | None:
        """What would make of an open item or key, or of one that begins here, the text of an earlier one; ``None`` where
        there is no such place, and where it may be another spelling of an earlier one already."""
        ends: list[bytes] = []
        for frame in self.frames:
            if frame.checked and frame.seen.count:
                found = self._ends_in(frame)
                if found is None:
                    return None
                ends += found
        return ends

    def _ends_in(self, frame: Frame) -> list[bytes] | None:
        innermost = frame is self.frames[-1]
        begins = innermost and self.mode in ("value", "key")
        open_ = b"" if begins else self.text[frame.start - self.base :]
        if not frame.plain or _RESPELT.search(open_):
            return None
        texts: Iterable[bytes] = frame.texts
        if innermost and not frame.is_array:
            if self.mode not in ("key", "key string"):
                return None
            texts = (json.dumps(key, ensure_ascii=False).encode() for key in frame.seen)
        elif innermost and self.mode == "after":
            return None
        return [text[len(open_) :] for text in texts if text.startswith(open_)]

    @property
    def begins_item(self) -> bool:
        """The next item or key is a watched one."""
        return self.mode in ("value", "key") and bool(self.frames) and self.frames[-1].checked

    def echoes(self) -> list[bytes]:
        """In a string inside a watched item: how earlier items went on where they had such a string."""
        if self.mode != "string" or self.frames[-1].checked:
            return []
        frame = next((one for one in reversed(self.frames) if one.checked and one.is_array), None)
        if frame is None:
            return []
        open_ = self.text[frame.start - self.base :]
        begun = open_[open_.rfind(b'"') :]
        pattern = re.compile(re.escape(begun))
        return [text[found.end() :] for text in frame.texts[-_MAX_ECHOES:] for found in pattern.finditer(text)]

    def string_ends(self) -> list[str] | None:
        """In a string: what would make of it an earlier item or key; ``None`` in the middle of a character."""
        frame = self.frames[-1]
        if not frame.checked or frame.is_array != (self.mode == "string"):
            return []
        try:
            begun = json.loads(self.text[frame.start - self.base :] + b'"')
        except ValueError:
            return None
        if not frame.is_array:
            return [key[len(begun) :] for key in frame.seen if key.startswith(begun)]
        opening = json.dumps(begun)[:-1]
        return [json.loads('"' + item[len(opening) :]) for item in frame.seen if item.startswith(opening)]

    @property
    def is_bare(self) -> bool:
        """A number or a word that is the whole document: only what follows tells whether it has ended."""
        return self.mode == "scalar" and not self.frames


def feed(plan: GuardPlan, state: State, data: bytes) -> State:
    """The state after ``data``. Raises ``ScanError``, ``RepetitionError`` among them."""
    state, taken = feed_some(plan, state, data)
    while taken < len(data):
        if state.mode == "end":
            if data[taken:].strip(_SPACE):
                raise ScanError
            return state
        state, more = feed_some(plan, state, data[taken:])
        taken += more
    return state


def feed_some(plan: GuardPlan, state: State, data: bytes) -> tuple[State, int]:
    """The state after the first bytes of ``data``, and their number: all of them, but no more than the document
    has, and one by one where it may have ended (``is_bare``). Raises as ``feed`` does."""
    scan = _Scan(plan, state, data)
    scan.run()
    return scan.state()


class _Scan:
    """One run over new bytes."""

    def __init__(self, plan: GuardPlan, state: State, data: bytes) -> None:
        self._plan = plan
        self._mode: Mode = state.mode
        self._frames = list(state.frames)
        self._base = state.base
        self._text = state.text + data
        self._at = len(state.text)
        self._start = self._at

    def run(self) -> None:
        while self._at < len(self._text) and self._mode != "end":
            if self._mode in ("string", "key string"):
                self._skip_plain()
                continue
            self._mode = self._step(self._text[self._at])
            self._at += 1
            if self._mode == "scalar" and not self._frames:
                return

    def state(self) -> tuple[State, int]:
        """Where the run ended, without the text that nobody will ask for, and how far it came."""
        end = self._base + self._at
        starts = [frame.start for frame in self._frames if frame.checked and frame.is_array]
        if self._mode in ("key string", "key escape"):
            starts.append(self._frames[-1].start)
        base = min(starts, default=end)
        text = self._text[base - self._base : self._at]
        return State(self._mode, tuple(self._frames), text, base), self._at - self._start

    def _skip_plain(self) -> None:
        """Over what ends no string."""
        text, at = self._text, self._at
        while at < len(text) and text[at] != _QUOTE and text[at] != _BACKSLASH:
            at += 1
        self._at = at + 1 if at < len(text) else at
        if at == len(text):
            return
        if text[at] == _BACKSLASH:
            self._mode = "string escape" if self._mode == "string" else "key escape"
        else:
            self._mode = self._completed(at + 1) if self._mode == "string" else self._key_completed(at + 1)

    def _step(self, byte: int) -> Mode:
        mode = self._mode
        if mode == "string escape":
            return "string"
        if mode == "key escape":
            return "key string"
        if mode == "scalar":
            if byte in _SCALAR or (byte in _SPACE and self._frames):
                return mode
            mode = self._completed(self._at)
        if byte in _SPACE:
            return mode
        if mode == "value":
            return self._value(byte)
        return self._between(mode, byte)

    def _between(self, mode: Mode, byte: int) -> Mode:
        """A byte that is no part of a value."""
        frame = self._frames[-1] if self._frames else None
        if mode == "colon" and byte == _COLON:
            return "value"
        if mode == "key" and byte == _QUOTE:
            self._frames[-1] = replace(self._frames[-1], start=self._base + self._at)
            return "key string"
        if frame is not None and mode == "after" and byte == _COMMA:
            return self._next(frame)
        if frame is not None and mode in ("after", "key") and byte == b"}]"[frame.is_array]:
            return self._closed()
        raise ScanError

    def _value(self, byte: int) -> Mode:
        frames = self._frames
        if frames and frames[-1].is_array:
            if byte in b"]" and frames[-1].index == 0:
                return self._closed()
            frames[-1] = replace(frames[-1], start=self._base + self._at)
        if byte == _QUOTE:
            return "string"
        if byte in b"[{":
            return self._opened(byte in b"[")
        if byte not in _SCALAR:
            raise ScanError
        return "scalar"

    def _opened(self, is_array: bool) -> Mode:
        plan = self._plan
        if not self._frames:
            nodes = plan.root
        else:
            outer = self._frames[-1]
            nodes = (
                plan.item(outer.nodes, outer.index) if outer.is_array else plan.member(outer.nodes, outer.key)
            )
        checked = plan.unique(nodes) if is_array else plan.distinct(nodes)
        self._frames.append(Frame(nodes, is_array, checked, start=self._base + self._at))
        return "value" if is_array else "key"

    def _closed(self) -> Mode:
        self._frames.pop()
        return self._completed(self._at + 1)

    def _next(self, frame: Frame) -> Mode:
        if not frame.is_array:
            return "key"
        self._frames[-1] = replace(frame, index=frame.index + 1)
        return "value"

    def _completed(self, end: int) -> Mode:
        """A value ends before ``end``."""
        if not self._frames:
            return "end"
        frame = self._frames[-1]
        if frame.is_array and frame.checked:
            seen = _with(frame, canonical(self._parsed(frame, end)))
            text = self._text[frame.start - self._base : end]
            plain = frame.plain and not _RESPELT.search(text)
            self._frames[-1] = replace(frame, seen=seen, texts=(*frame.texts, text), plain=plain)
        return "after"

    def _key_completed(self, end: int) -> Mode:
        frame = self._frames[-1]
        key = self._parsed(frame, end)
        seen = _with(frame, key) if frame.checked else frame.seen
        self._frames[-1] = replace(frame, key=key, seen=seen)
        return "colon"

    def _parsed(self, frame: Frame, end: int) -> Any:
        try:
            return _DECODER.decode(self._text[frame.start - self._base : end].decode())
        except ValueError:
            raise ScanError from None


def _with(frame: Frame, item: str) -> Seen:
    if item in frame.seen:
        raise RepetitionError
    return frame.seen.add(item)


class _Number(str):
    """Significant digits and exponent of a number: exact, and short where the number is not."""

    __slots__ = ()

    @staticmethod
    def of(text: str) -> _Number:
        mantissa, _, exponent = text.lower().partition("e")
        sign = "-" if mantissa.startswith("-") else ""
        whole, _, fraction = mantissa.lstrip("-").partition(".")
        digits = (whole + fraction).lstrip("0")
        kept = digits.rstrip("0")
        if not kept:
            return _Number("0")
        return _Number(f"{sign}{kept}e{int(exponent or 0) - len(fraction) + len(digits) - len(kept)}")


_DECODER = json.JSONDecoder(parse_float=_Number.of, parse_int=_Number.of)


def canonical(value: Any) -> str:
    """Equal texts for equal JSON values: ``1`` and ``1.0`` are equal, ``1`` and ``true`` are not."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, (str, bool)) or value is None:
        return json.dumps(value)
    return str(_Number.of(repr(value)))
