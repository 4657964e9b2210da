"""Finding the guarded values of a turn, and telling equal values from different ones."""

from __future__ import annotations

import pytest

from interlock.constraints.schema.guards.marks import is_text, special_text
from interlock.constraints.schema.guards.plan import GuardNode, GuardPlan
from interlock.constraints.schema.guards.reading import feed
from interlock.constraints.schema.guards.scan import RepetitionError, ScanError, State
from interlock.constraints.schema.guards.seen import Seen
from interlock.constraints.schema.guards.turn import (
    Alternative,
    Free,
    GuardedTurn,
    Literal,
    LostError,
    Opaque,
    Repeat,
    Sequence,
    Value,
)

UNIQUE = GuardPlan((GuardNode(unique=True),), frozenset({0}))
CALL, END = special_text(900), special_text(901)
TURN = GuardedTurn(
    Sequence(
        (
            Free(),
            Alternative((Literal(b"</think>"), Literal(CALL + b":"))),
            Repeat(Sequence((Opaque(), Literal(b"="), Value(0))), 1, 3, Literal(b";" + END)),
        )
    ),
    (UNIQUE,),
)


def follow(turn: GuardedTurn, parts: list[bytes], size: int) -> None:
    """Feed ``parts``, texts in pieces of ``size``."""
    readings = turn.start()
    for part in parts:
        step = size if is_text(part) else len(part)
        for start in range(0, len(part), step):
            readings = turn.after(readings, part[start : start + step])


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([b"[1,1] </think>ab=[1,2]"], None),
        ([b"[1,1] </thi </think>ab=[1,1]"], RepetitionError),
        ([b"x", CALL, b":7=[1,2];", END, b"=[1,2]"], None),
        ([b"x", CALL, b":7=[1,2];", END, b"9=[1,1"], None),
        ([b"x", CALL, b":7=[1,2];", END, b"9=[1,1]"], RepetitionError),
        ([b"x", END], LostError),
    ],
)
def test_values_are_found_wherever_they_stand(
    parts: list[bytes], error: type[Exception] | None, size: int
) -> None:
    turn = GuardedTurn.from_json(TURN.to_json())
    assert turn == TURN
    if error is None:
        follow(turn, parts, size)
    else:
        with pytest.raises(error):
            follow(turn, parts, size)


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("1", "1.0", True),
        ("10", "1e1", True),
        ("0", "-0.0e7", True),
        ("1e400000000", "10e399999999", True),
        ("1", "-1", False),
        ("1", '"1"', False),
        ("true", "1", False),
        ('"\\u00e9"', '"é"', True),
        ('{"a":1,"b":[2]}', '{ "b" : [2.0], "a":1}', True),
        ("[1,2]", "[2,1]", False),
        ("null", "false", False),
    ],
)
def test_equal_values_are_repetitions_in_any_spelling(first: str, second: str, equal: bool) -> None:
    text = f"[{first}, {second} ]".encode()
    for cut in range(len(text)):
        state = feed(UNIQUE, State(), text[:cut]) if cut < len(text) - 2 else State()
        rest = text[cut:] if cut < len(text) - 2 else text
        if equal:
            with pytest.raises(RepetitionError):
                feed(UNIQUE, state, rest)
        else:
            assert feed(UNIQUE, state, rest).mode == "end"


@pytest.mark.parametrize("text", ["[1}", '{"a":1]', "[1 :", "{1:2}", "x", "[,"])
def test_what_is_no_json_is_noticed(text: str) -> None:
    with pytest.raises(ScanError):
        feed(UNIQUE, State(), text.encode())


def test_versions_of_a_set_stay_as_they_were() -> None:
    versions = [Seen()]
    for number in range(200):
        versions.append(versions[-1].add(str(number)))
    assert [version.count for version in versions] == list(range(201))
    assert all(set(version) == set(map(str, range(version.count))) for version in versions)
    assert "7" in versions[8]
    assert "8" not in versions[8]
    assert len(versions[-1].parts) < 9
