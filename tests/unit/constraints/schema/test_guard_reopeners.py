"""Tokens that go over a comma and begin more: which of them need a look, and which do not."""

from __future__ import annotations

import pytest

from interlock.constraints import bitmask
from interlock.constraints.schema.guards.plan import NO_ROOM, Room
from interlock.constraints.schema.guards.reopeners import Reopeners

TEXTS = Room(fresh=True, strings=True, text=True)
SHORT = Room(fresh=True, strings=True)
MEMBERS = Room(fresh=True, members=True)
IN_STRING = (
    b'x","',
    b'","y',
    b'","',
    b'"},{"',
    b'"},"',
    b'"],"',
    b'"}],"',
    b'","",',
    b'","\\',
    b'\\",\\"',
    b"a,b",
    b'",',
)
OUTSIDE = (b",1", b"},{", b"],[", b'"a,b', b'"a","', b",", b", -", b'},"')


def in_question(
    tokens: tuple[bytes, ...], num_inside: int, room: Room, *, in_string: bool, is_outermost: bool = False
) -> set[bytes]:
    reopeners = Reopeners(enumerate(tokens), len(tokens), in_string=in_string)
    row = reopeners.in_question(num_inside, room, is_outermost=is_outermost)
    return {tokens[number] for number in bitmask.allowed_ids(row)}


@pytest.mark.parametrize(
    ("num_inside", "room", "expected"),
    [
        (0, TEXTS, {b'"},{"', b'"},"', b'"],"', b'"}],"', b'","",'}),
        (0, SHORT, {b'","y', b'"},{"', b'"},"', b'"],"', b'"}],"', b'","",', b'","\\'}),
        (1, MEMBERS, {b'"},"', b'"],"', b'"}],"'}),
        (2, MEMBERS, {b'"}],"'}),
        (0, NO_ROOM, {b'x","', b'","y', b'","', b'"},{"', b'"},"', b'"],"', b'"}],"', b'","",', b'","\\'}),
    ],
)
def test_inside_a_string(num_inside: int, room: Room, expected: set[bytes]) -> None:
    assert in_question(IN_STRING, num_inside, room, in_string=True) == expected


@pytest.mark.parametrize(
    ("num_inside", "room", "expected"),
    [
        (0, TEXTS, {b",1", b"},{", b"],[", b", -", b'},"', b'"a","'}),
        (1, MEMBERS, {b"],[", b'},"'}),
        (2, NO_ROOM, set()),
    ],
)
def test_outside_of_strings(num_inside: int, room: Room, expected: set[bytes]) -> None:
    assert in_question(OUTSIDE, num_inside, room, in_string=False) == expected


def test_what_only_leaves_the_outermost_array_is_fine() -> None:
    assert in_question(IN_STRING, 0, TEXTS, in_string=True, is_outermost=True) == {b'"}],"', b'","",'}


def test_items_that_a_token_holds_whole_are_told() -> None:
    tokens = (b'x","a","', b'","",', b'","a', b'"],["b","')
    reopeners = Reopeners(enumerate(tokens), len(tokens), in_string=True)
    assert [reopeners.passed(number) for number in range(4)] == [(b'"a"',), (b'""',), (), ()]
