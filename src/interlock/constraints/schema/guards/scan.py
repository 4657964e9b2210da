"""Follow a JSON document byte by byte and notice the byte that completes a repetition.

States are immutable: going back is keeping an old one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal

from interlock.constraints.schema.guards.plan import GuardPlan, Nodes

Mode = Literal[
    "value", "string", "string escape", "scalar", "after", "key", "key string", "key escape", "colon", "end"
]

_SPACE: Final = b" \t\n\r"
_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"\\,:'


class RepetitionError(Exception):
    """An item or a key came a second time where that is forbidden."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An open array or object. seen: its items or keys so far, in canonical form, where they must differ.
    start: where the current item or key begins."""

    nodes: Nodes
    is_array: bool
    checked: bool
    seen: frozenset[str] = frozenset()
    index: int = 0
    start: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True)
class State:
    mode: Mode = "value"
    frames: tuple[Frame, ...] = ()
    text: bytes = b""

    @property
    def watchful(self) -> bool:
        """Something written now could repeat something."""
        return any(frame.checked and frame.seen for frame in self.frames)

    @property
    def progress(self) -> tuple[int, ...]:
        """Changes when a watched item or key is complete, or its container is closed."""
        return tuple(len(frame.seen) for frame in self.frames if frame.checked)


def feed(plan: GuardPlan, state: State, data: bytes) -> State:
    """The state after ``data``. Raises ``RepetitionError``."""
    text = state.text + data
    mode, frames = state.mode, list(state.frames)
    for at in range(len(state.text), len(text)):
        mode = _step(plan, mode, frames, text, at)
    return State(mode, tuple(frames), text)


def _step(plan: GuardPlan, mode: Mode, frames: list[Frame], text: bytes, at: int) -> Mode:
    byte = text[at]
    if mode == "string":
        if byte == _BACKSLASH:
            return "string escape"
        return _completed(frames, text, at + 1) if byte == _QUOTE else mode
    if mode == "key string":
        if byte == _BACKSLASH:
            return "key escape"
        return _key_completed(frames, text, at + 1) if byte == _QUOTE else mode
    if mode in ("string escape", "key escape"):
        return "string" if mode == "string escape" else "key string"
    if mode == "scalar" and byte not in b",]} \t\n\r":
        return mode
    if mode == "scalar":
        mode = _completed(frames, text, at)
    if byte in _SPACE or mode == "end":
        return mode
    if mode == "colon":
        return "value" if byte == _COLON else mode
    if byte in b"]}":
        frames.pop()
        return _completed(frames, text, at + 1)
    if mode == "after":
        return _next(frames)
    if mode == "key":
        frames[-1] = replace(frames[-1], start=at)
        return "key string"
    return _value(plan, frames, byte, at)


def _value(plan: GuardPlan, frames: list[Frame], byte: int, at: int) -> Mode:
    if frames and frames[-1].is_array:
        frames[-1] = replace(frames[-1], start=at)
    if byte == _QUOTE:
        return "string"
    if byte not in b"[{":
        return "scalar"
    if not frames:
        nodes = plan.root
    else:
        outer = frames[-1]
        nodes = plan.item(outer.nodes, outer.index) if outer.is_array else plan.member(outer.nodes, outer.key)
    is_array = byte in b"["
    frames.append(Frame(nodes, is_array, plan.unique(nodes) if is_array else plan.distinct(nodes)))
    return "value" if is_array else "key"


def _next(frames: list[Frame]) -> Mode:
    frame = frames[-1]
    if not frame.is_array:
        return "key"
    frames[-1] = replace(frame, index=frame.index + 1)
    return "value"


def _completed(frames: list[Frame], text: bytes, end: int) -> Mode:
    """A value ends before ``end``."""
    if not frames:
        return "end"
    frame = frames[-1]
    if frame.is_array and frame.checked:
        item = canonical(json.loads(text[frame.start : end], parse_float=Fraction))
        if item in frame.seen:
            raise RepetitionError
        frames[-1] = replace(frame, seen=frame.seen | {item})
    return "after"


def _key_completed(frames: list[Frame], text: bytes, end: int) -> Mode:
    frame = frames[-1]
    key = json.loads(text[frame.start : end])
    seen = frame.seen
    if frame.checked:
        if key in seen:
            raise RepetitionError
        seen |= {key}
    frames[-1] = replace(frame, key=key, seen=seen)
    return "colon"


def canonical(value: Any) -> str:
    """Equal texts for equal JSON values: ``1`` and ``1.0`` are equal, ``1`` and ``true`` are not."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (str, bool)) or value is None:
        return json.dumps(value)
    return str(Fraction(value))
