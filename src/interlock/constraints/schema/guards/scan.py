"""Follow a document byte by byte and notice the byte that completes a repetition: JSON here, the rest in
``argument_scans.py``.

States are immutable: going back is keeping an old one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from interlock.constraints.schema.guards.memo import Memo
from interlock.constraints.schema.guards.notation import JSON, Notation, may_end
from interlock.constraints.schema.guards.plan import NO_ROOM, GuardPlan, Nodes, Room
from interlock.constraints.schema.guards.seen import Seen
from interlock.constraints.schema.guards.slots import SlotValues, reserved, slots_in
from interlock.constraints.schema.guards.values import (
    Canonical,
    array,
    is_plain_string,
    object_,
    scalar,
    spelling,
)

Mode = Literal[
    "value", "string", "string escape", "scalar", "after", "key", "key string", "key escape", "colon", "end",
    "start", "between", "tag", "end tag", "leave",
]  # fmt: skip
"""What is open. Arguments have further modes: ``start`` of an object without a bracket, ``between`` two parameters, in the
``tag`` of one, and in the ``end tag`` behind its value, the rest of which ``leave`` is."""

_SPACE: Final = b" \t\n\r"
_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"\\,:'
_SCALAR: Final = frozenset(b"-+.0123456789eEtrufalsnTFNo")
_EXACT: Final = frozenset(("start", "between", "tag", "end tag", "leave"))  # modes in which space is no space
_MAY_END: Final = frozenset(("scalar", "start", "after"))
KEYS: Final = frozenset(("key string", "key escape"))
"""Modes inside a key."""
_OPEN: Final = frozenset(("string", "string escape", "scalar", "key string", "key escape"))


class ScanError(Exception):
    """The text is no document."""


class RepetitionError(ScanError):
    """An item or a key came where that is forbidden, a second time as a rule. frames: what was open then; the innermost
    one is where ``item`` came."""

    def __init__(self, frames: Sequence[Frame], item: Canonical) -> None:
        super().__init__()
        self.frames = tuple(frames)
        self.item = item


class Frame(msgspec.Struct, frozen=True):
    """An open array or object.

    seen: its items or keys so far, where it is checked or each key may come ``once``: they must differ. is_within: it or one around
    it is checked. kept: its content is part of an item that must
    differ from others. parts: what is complete of that content. origin: earlier items, or the parts of them in this place,
    of the same kind; rivals: those of them that this one may still become. slots: later positions that need one of few
    values; reserved: values that the item at ``index`` must leave to them. is_inexact: more values may have to be left than
    those. room: what always leaves new values. place: ``index``, as far as it matters to what an item may be.
    """

    nodes: Nodes
    is_array: bool
    checked: bool
    is_within: bool
    once: bool = False
    kept: bool = False
    origin: tuple[Canonical, ...] = ()
    rivals: tuple[Canonical, ...] = ()
    parts: tuple[Any, ...] = ()
    seen: Seen = Seen()
    memo: Memo | None = None
    slots: SlotValues = ()
    reserved: tuple[Canonical, ...] = ()
    is_inexact: bool = False
    room: Room = NO_ROOM
    index: int = 0
    place: int = 0
    key: str = ""


Path = tuple[int | str, ...]
"""Where an array is in its document: the index or key in each container around it."""


def path(frames: Iterable[Frame]) -> Path:
    """Of what is open, or begins, inside ``frames``."""
    return tuple(frame.index if frame.is_array else frame.key for frame in frames)


class Item(msgspec.Struct, frozen=True):
    """The array at ``path`` has ``value`` at ``index``."""

    path: Path
    index: int
    value: Canonical


class Ban(msgspec.Struct, frozen=True):
    """What a dead end has taught: items of the array at ``path`` in front of the one at ``until`` must leave it ``value``.
    reasons: because all else it may have is taken by these."""

    path: Path
    value: Canonical
    until: int
    reasons: tuple[Item, ...]

    @property
    def since(self) -> int:
        """The first index from which that holds, whatever the items are from there on."""
        return max((one.index + 1 for one in self.reasons if one.path == self.path), default=0)


class State(msgspec.Struct, frozen=True):
    """A place in a document. text: what there is of the open string, number, word, key or tag. bans: all that hold here."""

    mode: Mode = "value"
    frames: tuple[Frame, ...] = ()
    text: bytes = b""
    notation: Notation = JSON
    bans: tuple[Ban, ...] = ()

    @property
    def is_guarded(self) -> bool:
        """Something is watched here."""
        return bool(self.frames) and self.frames[-1].is_within

    @property
    def may_end(self) -> bool:
        """Only what follows tells whether the document has ended: behind a number or a word that is all of it, and between
        the members of an object without brackets."""
        return may_end(self.notation, self.mode, len(self.frames))


def inside(frame: Frame, text: bytes = b"") -> Iterable[Canonical]:
    """What the next or open value in ``frame`` must not be, or may still be of that: all that a scalar which begins with
    ``text`` may become, and more."""
    if frame.is_array:
        at = 1 + frame.index
        found = tuple(rival[at] for rival in frame.rivals if len(rival) > at)
        if not frame.checked:
            return found
        seen = frame.seen.beginning_with(text) if is_plain_string(text) else frame.seen
        return chain(found, seen, frame.reserved)
    return tuple(value for rival in frame.rivals for key, value in rival[1:] if key == frame.key)


class Scan:
    """One run over new bytes."""

    _open_modes: frozenset[str] = _OPEN
    """Modes in which what is open is told by its text."""
    _skipped_modes: frozenset[str] = frozenset(("string", "key string"))
    """Modes in which most bytes mean nothing."""

    def __init__(self, plan: GuardPlan, state: State, data: bytes) -> None:
        self._plan = plan
        self._notation = state.notation
        self._mode: Mode = state.mode
        self._frames = list(state.frames)
        self._bans = state.bans
        self._text = state.text + data
        self._quote = _QUOTE
        self._begin = 0  # of what is open
        self._at = self._start = len(state.text)

    def run(self) -> None:
        while self._at < len(self._text) and self._mode != "end":
            if self._mode in self._skipped_modes:
                self._skip_plain()
            else:
                self._mode = self._step(self._text[self._at])
                self._at += 1
            if self._may_end():
                return

    def _may_end(self) -> bool:
        return self._mode in _MAY_END and may_end(self._notation, self._mode, len(self._frames))

    def state(self) -> tuple[State, int]:
        """Where the run ended, and how far it came."""
        text = self._text[self._begin : self._at] if self._mode in self._open_modes and self._is_told() else b""
        return State(self._mode, tuple(self._frames), text, self._notation, self._bans), self._at - self._start

    def _is_told(self) -> bool:
        """What is open matters beyond its mode: a key, or a value where one is compared. A long one is kept for every token."""
        if self._mode in KEYS or (self._frames and self._frames[-1].is_within):
            return True
        return self._notation != JSON

    def _skip_plain(self) -> None:
        """Over what ends no string."""
        text, at, quote = self._text, self._at, self._quote
        while at < len(text) and text[at] != quote and text[at] != _BACKSLASH:
            at += 1
        self._at = at + 1 if at < len(text) else at
        if at == len(text):
            return
        if text[at] == _BACKSLASH:
            self._mode = "string escape" if self._mode == "string" else "key escape"
        else:
            self._mode = (
                self._scalar_completed(at + 1) if self._mode == "string" else self._key_completed(at + 1)
            )

    def _step(self, byte: int) -> Mode:
        mode = self._mode
        if mode == "string escape":
            return "string"
        if mode == "key escape":
            return "key string"
        if mode == "scalar":
            if byte in _SCALAR or (byte in _SPACE and self._frames):
                return mode
            mode = self._scalar_completed(self._at)
        if byte in _SPACE and self._skips_space(mode):
            return mode
        if mode == "value":
            return self._value(byte)
        return self._between(mode, byte)

    def _skips_space(self, mode: Mode) -> bool:
        return mode not in _EXACT

    def _between(self, mode: Mode, byte: int) -> Mode:
        """A byte that is no part of a value."""
        frame = self._frames[-1] if self._frames else None
        if mode == "colon" and byte == _COLON:
            return "value"
        if frame is not None and mode == "after" and byte == _COMMA:
            return self._next(frame)
        if frame is not None and mode in ("after", "key") and byte == b"}]"[frame.is_array]:
            return self._closed()
        if mode == "key":
            return self._key(byte)
        raise ScanError

    def _key(self, byte: int) -> Mode:
        """The first byte of a key."""
        if byte != self._quote:
            raise ScanError
        self._begin = self._at
        return "key string"

    def _value(self, byte: int) -> Mode:
        frames = self._frames
        if byte in b"]" and frames and frames[-1].is_array and frames[-1].index == 0:
            return self._closed()
        if byte in b"[{":
            return self._opened(byte in b"[")
        self._begin = self._at
        if byte == self._quote:
            return "string"
        if byte not in _SCALAR:
            raise ScanError
        return "scalar"

    def _opened(self, is_array: bool) -> Mode:
        plan, nodes = self._plan, self._nodes()
        kept = False
        origin: tuple[Canonical, ...] = ()
        if self._frames:
            outer = self._frames[-1]
            kept = outer.kept or (outer.is_array and outer.checked)
            kind = "[" if is_array else "{"
            if kept:
                origin = tuple(one for one in inside(outer) if isinstance(one, tuple) and one[0] == kind)
        checked = plan.unique(nodes) if is_array else plan.distinct(nodes)
        once = not is_array and not checked and plan.once(nodes)
        memo = Memo() if checked else None
        room = plan.room(nodes, is_array=is_array) if kept or checked else NO_ROOM
        within = checked or (bool(self._frames) and self._frames[-1].is_within)
        frame = Frame(
            nodes, is_array, checked, within, once, kept, origin=origin, rivals=origin, memo=memo, room=room
        )
        if checked and is_array:
            values = slots_in(self._notation, plan.slots(nodes))
            frame = replace(frame, slots=values, is_inexact=plan.inexact(nodes))
            frame = replace(frame, reserved=self._reserved(frame, 0))
        self._frames.append(frame)
        return "value" if is_array else "key"

    def _nodes(self) -> Nodes:
        """What the value here may be."""
        if not self._frames:
            return self._plan.root
        outer = self._frames[-1]
        if outer.is_array:
            return self._plan.item(outer.nodes, outer.index)
        return self._plan.member(outer.nodes, outer.key)

    def _closed(self) -> Mode:
        frame = self._frames.pop()
        return self._completed((array if frame.is_array else object_)(frame.parts) if frame.kept else None)

    def _next(self, frame: Frame) -> Mode:
        if not frame.is_array:
            return "key"
        index = frame.index + 1
        place = min(index, self._plan.num_fixed(frame.nodes))
        if frame.checked and (frame.slots or self._bans):  # what is reserved differs from item to item
            self._frames.pop()
            frame = replace(frame, reserved=self._reserved(frame, index), memo=Memo())
            self._frames.append(frame)
        self._frames[-1] = replace(frame, index=index, place=place)
        return "value"

    def _reserved(self, frame: Frame, index: int) -> tuple[Canonical, ...]:
        """What the item at ``index`` of ``frame`` must not be beside the earlier ones."""
        return kept_back(frame, index, path(self._frames), self._bans)

    def _scalar_completed(self, end: int) -> Mode:
        frame = self._frames[-1] if self._frames else None
        if frame is None or not (frame.kept or (frame.is_array and frame.checked)):
            return self._completed(None)
        text = self._text[self._begin : end]
        try:
            return self._completed(self._string(text) if text[0] == self._quote else scalar(text))
        except ValueError:
            raise ScanError from None

    def _string(self, text: bytes) -> Canonical:
        return spelling(json.loads(text))

    def _completed(self, value: Canonical) -> Mode:
        """A value ends here. value: known where it matters."""
        if not self._frames:
            return "end"
        frame = self._frames[-1]
        if frame.is_array:
            if frame.checked:
                frame = self._with(frame, value)
            if frame.kept:
                at = 1 + frame.index
                rivals = tuple(one for one in frame.rivals if len(one) > at and one[at] == value)
                frame = replace(frame, parts=(*frame.parts, value), rivals=rivals)
        elif frame.kept:
            part = (frame.key, value)
            rivals = tuple(one for one in frame.rivals if part in one)
            frame = replace(frame, parts=(*frame.parts, part), rivals=rivals)
        self._frames[-1] = frame
        return "after"

    def _key_completed(self, end: int) -> Mode:
        try:
            self._name(self._key_name(self._text[self._begin : end]))
        except ValueError:
            raise ScanError from None
        return "colon"

    def _key_name(self, text: bytes) -> str:
        return str(json.loads(text))

    def _name(self, key: str) -> None:
        """The next value is that of ``key``."""
        frame = self._frames[-1]
        if frame.checked or frame.once:
            frame = self._with(frame, key)
        if frame.kept and any(name == key for name, _ in frame.parts):
            parts = tuple(part for part in frame.parts if part[0] != key)  # the last one counts
            rivals = tuple(one for one in frame.origin if all(part in one for part in parts))
            frame = replace(frame, parts=parts, rivals=rivals)
        self._frames[-1] = replace(frame, key=key)

    def _with(self, frame: Frame, item: Canonical) -> Frame:
        if item in frame.seen or item in frame.reserved:
            raise RepetitionError(self._frames, item)
        return replace(frame, seen=frame.seen.add(item), memo=None if frame.memo is None else frame.memo.copy())


def kept_back(frame: Frame, index: int, at: Path, bans: Sequence[Ban]) -> tuple[Canonical, ...]:
    """The values that the item at ``index`` of an array at ``at`` must leave to later ones."""
    found = reserved(frame.slots, index, frame.seen) if frame.slots else frozenset()
    if bans:
        found = found.union(ban.value for ban in bans if ban.path == at and ban.until > index)
    return tuple(found)
