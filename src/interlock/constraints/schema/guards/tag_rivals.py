"""Texts of nested tags that lead towards a repetition."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.constraints.schema.guards.notation import NestedTags
from interlock.constraints.schema.guards.scan import State, inside
from interlock.constraints.schema.guards.values import Canonical, is_number, may_become, number_spellings


def texts(tags: NestedTags, state: State, keys: Iterator[bytes]) -> Iterator[bytes]:
    """From the beginning of what is open. keys: opening tags that a rival has."""
    frame = state.frames[-1]
    match state.mode:
        case "leave":
            yield (tags.item if frame.is_array else frame.key.encode()) + b">"
        case "after" | "tag":
            yield from (tags.opening(tags.item),) if frame.is_array else keys
            if len(state.frames) > 1:
                yield tags.leaving
        case _:
            begun = tags.raw(state.text)
            for one in inside(frame):
                yield from _of_value(tags, begun, one)


def is_near(tags: NestedTags, state: State, keys: Iterator[bytes]) -> bool:
    frame = state.frames[-1]
    if state.mode in ("after", "tag", "leave"):
        return bool(frame.rivals) or (frame.checked and bool(frame.seen.count))
    begun = tags.raw(state.text)
    return any(is_number(one) and may_become(begun, one) for one in inside(frame)) or any(
        text.startswith(state.text) for text in texts(tags, state, keys)
    )


def _of_value(tags: NestedTags, begun: bytes, value: Canonical) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif is_number(value):
        yield from number_spellings(value)
        if may_become(begun, value):
            yield begun + tags.leaving
    elif isinstance(value, str):
        yield value.encode() + tags.leaving
    elif len(value) == 1:
        yield tags.leaving
    elif value[0] == "[":
        yield tags.opening(tags.item)
    else:
        yield from (tags.opening(key.encode()) for key, _ in value[1:])
