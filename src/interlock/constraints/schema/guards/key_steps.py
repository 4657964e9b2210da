"""What a token does where only keys are watched, looked up.

Most places are alike: a mode, and the kinds of the two innermost containers, decide what a token opens, closes and names. So the
scan of a token is done once for each such place, and afterwards what came of it is done again.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from msgspec.structs import replace

from interlock.constraints.schema.guards.plan import EVERY_KEY_ONCE
from interlock.constraints.schema.guards.scan import (
    KEYS,
    Frame,
    Mode,
    RepetitionError,
    Scan,
    ScanError,
    State,
)

_MAX_KNOWN = 16_384
"""Some 6 MB."""
_MAX_BYTES = 64

_OPENED: Final = tuple(
    Frame(EVERY_KEY_ONCE.root, is_array, checked=False, is_within=False, once=not is_array)
    for is_array in (False, True)
)
"""By whether it is an array."""


class _Open(NamedTuple):
    is_array: bool


class _Close(NamedTuple):
    pass


class _Name(NamedTuple):
    """A key from ``begin`` to ``end`` of the token; ``None``: the one that is open."""

    begin: int | None
    end: int


class Step(NamedTuple):
    """mode: behind the token. text_from: where in the token the text begins that is open then; ``None``: it goes on."""

    mode: Mode
    done: tuple[_Open | _Close | _Name, ...]
    text_from: int | None


_known: dict[tuple[Mode, bool, bool | None, bytes], Step | None] = {}


def after(state: State, data: bytes) -> State | None:
    """Where ``data`` leads from a place of JSON inside a container, of a plan that is ``EVERY_KEY_ONCE``; ``None`` where the two
    innermost containers do not tell. Raises ``RepetitionError``."""
    frames = state.frames
    below = frames[-2].is_array if len(frames) > 1 else None
    where = state.mode, frames[-1].is_array, below, data
    try:
        step = _known[where]
    except KeyError:
        step = _recorded(*where)
        if len(data) <= _MAX_BYTES:
            if len(_known) >= _MAX_KNOWN:
                _known.clear()
            _known[where] = step
    if step is None:
        return None
    if step.done:
        frames = _done(step, state, data)
    text = b""
    if step.mode in KEYS:
        text = state.text + data if step.text_from is None else data[step.text_from :]
    return State(step.mode, frames, text, state.notation, state.bans)


def _done(step: Step, state: State, data: bytes) -> tuple[Frame, ...]:
    frames = list(state.frames)
    for one in step.done:
        if isinstance(one, _Open):
            frames.append(_OPENED[one.is_array])
        elif isinstance(one, _Close):
            frames.pop()
        else:
            text = state.text + data[: one.end] if one.begin is None else data[one.begin : one.end]
            frame, name = frames[-1], _name(text)
            if name in frame.seen:
                raise RepetitionError(frames, name)
            frames[-1] = replace(frame, seen=frame.seen.add(name), key=name)
    return tuple(frames)


def _name(text: bytes) -> str:
    try:
        return str(json.loads(text)) if b"\\" in text else text[1:-1].decode()
    except ValueError:
        raise ScanError from None


def _recorded(mode: Mode, is_array: bool, below: bool | None, data: bytes) -> Step | None:
    kinds = (is_array,) if below is None else (below, is_array)
    open_text = b'"' if mode in KEYS else b""
    scan = _Recorder(State(mode, tuple(_OPENED[kind] for kind in kinds), open_text), data)
    try:
        scan.run()
    except (ScanError, _UntoldError):
        return None
    end, begin = scan.ended()
    return Step(end, tuple(scan.done), begin)


class _UntoldError(Exception):
    """What was around the known containers matters."""


class _Recorder(Scan):
    """A scan of one token that notes what it does."""

    def __init__(self, state: State, data: bytes) -> None:
        super().__init__(EVERY_KEY_ONCE, state, data)
        self.done: list[_Open | _Close | _Name] = []

    def ended(self) -> tuple[Mode, int | None]:
        """The mode, and where the open key begins; ``None``: before the token."""
        return self._mode, self._in_token(self._begin)

    def _in_token(self, at: int) -> int | None:
        return at - self._start if at >= self._start else None

    def _opened(self, is_array: bool) -> Mode:
        self.done.append(_Open(is_array))
        self._frames.append(_OPENED[is_array])
        return "value" if is_array else "key"

    def _closed(self) -> Mode:
        if len(self._frames) == 1:
            raise _UntoldError
        self.done.append(_Close())
        self._frames.pop()
        return "after"

    def _key_completed(self, end: int) -> Mode:
        self.done.append(_Name(self._in_token(self._begin), end - self._start))
        return "colon"
