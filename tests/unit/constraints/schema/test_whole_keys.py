"""Which tokens hold a whole key of JSON depends on where they come."""

from __future__ import annotations

import itertools

import pytest

from interlock.constraints.schema.guards.notation import JSON
from interlock.constraints.schema.guards.plan import EVERY_KEY_ONCE, GuardPlan
from interlock.constraints.schema.guards.reading import feed, start
from interlock.constraints.schema.guards.scan import RepetitionError, ScanError
from interlock.constraints.schema.guards.whole_keys import WholeKeys

TOKENS = (
    b"", b'"', b'""', b'"":', b'"": 1', b'{"":', b'{"":{"":', b'","', b'",""', b'","":', b'":"', b'":"",', b'":{"":', b'"},"":', b'"]},"-":',
    b'}],"_":[{"":', b'"\\u002d":', b',"-":', b',"-"', b'1,"":', b'"a":1', b"-", b"]", b"}", b'"" "":', b'\\"":""',
)  # fmt: skip
"""No vocabulary has all of them."""

NOTHING = GuardPlan((), frozenset())
WHOLE = WholeKeys(enumerate(TOKENS))


def held(text: bytes) -> dict[bytes, set[str]]:
    state = feed(EVERY_KEY_ONCE, start(JSON), text)
    return {TOKENS[number]: set(names) for number, names in WHOLE.held(state).items()}


def test_names_are_what_stands_between_two_quotes() -> None:
    assert {"", ",", ":", "-", "a", "_", '"', "},", "]},"} <= WHOLE.names | {'"'}
    assert "\\u002d" not in WHOLE.names


@pytest.mark.parametrize(
    ("text", "token", "names"),
    [
        (b"{", b'"":', {""}),
        (b"{", b'"\\u002d":', {"-"}),
        (b"{", b'"a":1', {"a"}),
        (b"[", b'""', None),  # a value
        (b"[", b'{"":{"":', {""}),
        (b'{"', b'":{"":', {""}),  # the open key ends, and another one comes inside
        (b'{"', b'":"', None),
        (b'{"a":"', b'","":', {""}),
        (b'["', b'","":', None),
        (b'{"a":["', b'"]},"-":', None),  # nothing is around that
        (b'[{"a":["', b'"]},"-":', None),  # an array is
        (b'{"b":{"a":["', b'"]},"-":', {"-"}),
        (b'{"b":[{"a":1', b'}],"_":[{"":', {"_", ""}),
        (b'{"a":1', b',"-"', {"-"}),
        (b'{"a":"', b',"-"', None),  # the value has ended behind the comma
        (b'{"a":"\\', b'","":', None),
    ],
)
def test_where_it_comes_decides(text: bytes, token: bytes, names: set[str] | None) -> None:
    assert held(text).get(token) == names


def test_whatever_repeats_a_key_that_a_token_holds_is_among_them() -> None:
    texts = [
        b'{"-":1',
        b'{"-":[1]',
        b'{"-":1,',
        b'{"":1,',
        b'{"_":1,"":[{"a":1',
        b'{"a":{"_":1,"b":[{"a":1',
        b'{"-":1,"a":[{"":"x',
        b'{"":1,"-":{',
        b'{"-":"',
        b'{"":["',
        b'{"_":[{"":"',
        b'[{"-":[1',
        b'{"":{"":1',
        b'{"-":{"a":["',
        b'{"":1,"',
        b'{"a":{"":"\\',
    ]
    num_repeated = 0
    for text, (number, token) in itertools.product(texts, enumerate(TOKENS)):
        state = feed(EVERY_KEY_ONCE, start(JSON), text)
        error = repetition(text, token)
        if error is not None and not (state.mode == "key string" and error.frames == state.frames):
            num_repeated += 1
            assert error.item in WHOLE.held(state)[number]
    assert num_repeated >= 8


def repetition(text: bytes, token: bytes) -> RepetitionError | None:
    """Where the two are JSON so far."""
    try:
        feed(NOTHING, feed(NOTHING, start(JSON), text), token)
        feed(EVERY_KEY_ONCE, feed(EVERY_KEY_ONCE, start(JSON), text), token)
    except RepetitionError as error:
        return error
    except ScanError:
        pass
    return None
