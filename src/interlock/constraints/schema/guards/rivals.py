"""What a place in a document has in common with earlier items: whether one of them may still be repeated from here, and
how that would go on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Literal

from interlock.constraints.schema.guards import tag_rivals
from interlock.constraints.schema.guards.argument_scans import fixed_text
from interlock.constraints.schema.guards.notation import JSON, NestedTags, Notation, Tags, key_text
from interlock.constraints.schema.guards.scan import Frame, State, inside
from interlock.constraints.schema.guards.values import (
    Canonical,
    is_number,
    may_become,
    number_spellings,
    spelling,
    string_rest,
)

Respelling = Literal["value", "scalar", "structure", "escape", "hex", "character"]

_STRINGS = ("string", "string escape", "key string", "key escape")
_OPEN = ("value", "string", "string escape", "scalar")
_KEYS = ("key", "key string", "key escape")


def scope(state: State) -> Frame | None:
    """The outermost array whose items must differ, or the innermost object if only keys must; ``None`` where nothing is
    watched."""
    at = scope_index(state)
    return None if at is None else state.frames[at]


def scope_index(state: State) -> int | None:
    checked = [at for at, frame in enumerate(state.frames) if frame.checked]
    arrays = (at for at in checked if state.frames[at].is_array)
    return next(arrays, checked[-1] if checked else None)


def is_near(state: State) -> bool:
    """Something may be repeated by what is open here, or by what comes next."""
    if not state.frames or state.mode == "end":
        return False
    frame, notation = state.frames[-1], state.notation
    if isinstance(notation, NestedTags):
        return tag_rivals.is_near(notation, state, keys(state))
    if state.mode in _OPEN:
        return _may_close(state) or any(may_become(state.text, one) for one in inside(frame, state.text))
    if state.mode in _KEYS:
        return (state.mode == "key" and bool(frame.rivals)) or any(
            string_rest(state.text, key) is not None for key in keys(state)
        )
    if state.mode == "colon":
        return any(True for _ in inside(frame))
    return bool(frame.rivals) or (frame.checked and bool(frame.seen.count))


def keys(state: State) -> Iterator[bytes]:
    """Keys that a rival has, or that must not come again, as they are written."""
    frame = state.frames[-1]
    if frame.is_array:
        return iter(())
    given = {key for key, _ in frame.parts}
    names = {key for rival in frame.rivals for key, _ in rival[1:] if key not in given}
    is_outermost = len(state.frames) == 1
    return (
        _key(state.notation, name, is_outermost)
        for name in (names.union(frame.seen) if frame.checked else names)
    )


@lru_cache(4_096)
def _key(notation: Notation, name: str, is_outermost: bool) -> bytes:
    return key_text(notation, name, is_outermost=is_outermost, plain=spelling(name))


def echoes(state: State) -> Iterable[bytes]:
    """Texts that would lead from here towards a repetition, up to the end of what is open or next. All of them in the
    plainest spelling, and those of other spellings that are likely."""
    frame, mode = state.frames[-1], state.mode
    notation, size = state.notation, len(state.text)
    if isinstance(notation, NestedTags):
        found = set(tag_rivals.texts(notation, state, keys(state)))
        return {text[size:] for text in found if text.startswith(state.text) and len(text) > size}
    if isinstance(notation, Tags) and len(state.frames) == 1 and mode in ("after", "between"):
        return (fixed_text(notation, is_first=not frame.key)[size:],)
    if mode == "after":
        return (b",", b"]" if frame.is_array else b"}")
    if mode == "colon":
        return (b":",)
    if mode in _KEYS:
        found = {rest for key in keys(state) if (rest := string_rest(state.text, key))}
        return found | {b"}"} if mode == "key" and frame.rivals else found
    rests = {rest for one in inside(frame, state.text) for rest in _rests(state.text, one)}
    return rests | {b"]"} if _may_close(state) else rests


def respelling(state: State) -> Respelling | None:
    """How what goes on from here towards a repetition may be written otherwise than in ``echoes``."""
    if state.mode in ("value", "scalar"):
        return state.mode
    if state.notation != JSON:
        return None
    if state.mode not in _STRINGS:
        return "structure"
    if state.mode in ("string escape", "key escape"):
        return "escape"
    frame = state.frames[-1]
    texts = (
        keys(state)
        if state.mode == "key string"
        else (one for one in inside(frame, state.text) if isinstance(one, bytes))
    )
    rests = [rest for one in texts if (rest := string_rest(state.text, one)) is not None]
    if not all(rests):
        return "hex"
    return None if all(map(bytes.isascii, rests)) else "character"


def _may_close(state: State) -> bool:
    """The array that has just begun may end and be a rival by that."""
    frame = state.frames[-1]
    return state.mode == "value" and frame.is_array and frame.index == 0 and ("[",) in frame.rivals


def _rests(text: bytes, value: Canonical) -> Iterable[bytes]:
    if isinstance(value, tuple):
        return () if text else (value[0].encode(),)
    if isinstance(value, bytes):
        rest = string_rest(text, value)
        return (rest,) if rest else ()
    texts = number_spellings(value) if is_number(value) else (value.encode(),)
    return [one[len(text) :] for one in texts if one.startswith(text) and len(one) > len(text)]


def place(state: State) -> tuple[Hashable, ...]:
    """Equal for places from which a document goes on alike as far as the items of its scope matter."""
    at = scope_index(state)
    frames = () if at is None else state.frames[at:]
    first = frames[0].place if frames else 0
    return (first, state.mode, state.text, *map(_content, frames[1:]))


def _content(frame: Frame) -> Hashable:
    if frame.is_array:
        return (frame.is_array, frame.index, frame.parts)
    return (frame.is_array, frame.key, frozenset(frame.parts))
