"""Where tokens that end an item come to: known of a grammar once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple

from interlock.constraints.schema.guards.rivals import place, scope_index
from interlock.constraints.schema.guards.room import has_way, is_fresh
from interlock.constraints.schema.guards.scan import Mode, State

Place = tuple[tuple[Hashable, ...], ...]
"""By ``place``, one for each state that matters."""


class Arrival(NamedTuple):
    """Where a token comes to in the next item, and how many items it ends before. where: empty where that depends on more.
    begun: what it begins of the string that comes next in the innermost array, where such a one may come. way: a way on is
    plain there, or is if the items around the innermost array, which stays open, can become new ones."""

    where: Place = ()
    num_ended: int = 0
    begun: bytes | None = None
    way: Literal["", "plain", "around"] = ""


UNKNOWN = Arrival()
Arrivals = dict[Hashable, dict[int | bytes, Arrival | None]]
"""By the shape of a place, then by token, or by what of it follows a string; ``None`` if it begins no item."""

_BEHIND: frozenset[Mode] = frozenset(("after", "tag", "leave"))  # an item, where its array is what is open
_OUTSIDE: frozenset[Mode] = _BEHIND | {"value"}


def arrived(before: State, after: list[State]) -> Arrival | None:
    at = scope_index(before)
    assert at is not None
    old = before.frames
    if not after:
        return None
    new = after[0].frames
    if len(after) > 1 or len(new) <= at:
        return Arrival(num_ended=1)
    ended = [new[depth].seen.count - one.seen.count for depth, one in enumerate(old[: len(new)])]
    is_next = len(new) == len(old) and old[-1].is_array and ended[-1] == sum(ended) == 1
    is_string = is_next and before.mode == "string" and after[0].mode in ("string", "value")
    begun = after[0].text if is_string else None
    if any(ended[:at] + ended[at + 1 :]) or ended[at] > 1:
        is_around = len(new) == len(old) and is_fresh(after[0])
        return Arrival(num_ended=1, begun=begun, way="around" if is_around else "")
    is_inside = len(new) > at + 1 or after[0].mode not in _BEHIND
    begins = ended[at] or (len(old) == at + 1 and before.mode in _OUTSIDE)
    if not (is_inside and begins):
        return None
    return Arrival((place(after[0]),), ended[at], begun, "plain" if has_way(after[0]) else "")


def shape(state: State) -> Hashable:
    """What decides where a token leads, as far as items begin and end."""
    at = scope_index(state)
    frames = state.frames[at:]
    return (state.mode, frames[0].place, *((one.is_array, one.checked, one.index == 0) for one in frames))
