"""What is looked up of a token is what a scan of it gives."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock.constraints.schema.guards import key_steps
from interlock.constraints.schema.guards.notation import JSON
from interlock.constraints.schema.guards.plan import EVERY_KEY_ONCE, GuardPlan
from interlock.constraints.schema.guards.reading import feed, start
from interlock.constraints.schema.guards.scan import RepetitionError, State

SCANNED = GuardPlan(EVERY_KEY_ONCE.nodes, EVERY_KEY_ONCE.root)
"""An equal plan, of which nothing is looked up."""

KEYS = st.sampled_from(["", "a", "b", "ab", "é", "😀", '"', "\\", "a b", ",", ":", "\n"])
VALUES = st.recursive(
    st.sampled_from([None, True, 0, -1.5, 1e300, "", "a", '"', "\\", '","a":', "日本", "]}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def told(state: State) -> tuple[Any, ...]:
    """Without what only guards of items need."""
    return (
        state.mode,
        state.text,
        [(frame.is_array, sorted(map(str, frame.seen)), frame.key, frame.once) for frame in state.frames],
    )


@given(value=VALUES, is_ascii=st.booleans(), is_spaced=st.booleans(), data=st.data())
def test_pieces_of_documents(value: Any, is_ascii: bool, is_spaced: bool, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, separators=None if is_spaced else (",", ":")).encode()
    looked_up = scanned = start(JSON)
    at = 0
    while at < len(text):
        size = data.draw(st.integers(1, 6))
        piece = text[at : at + size]
        looked_up = feed(EVERY_KEY_ONCE, looked_up, piece)
        scanned = feed(SCANNED, scanned, piece)
        assert told(looked_up) == told(scanned), (text[:at], piece)
        at += size


@given(
    value=st.dictionaries(KEYS, VALUES, min_size=1, max_size=3),
    key=KEYS,
    splits=st.lists(st.integers(1, 4), min_size=1),
)
def test_a_key_that_comes_again(value: dict[str, Any], key: str, splits: list[int]) -> None:
    text = json.dumps(value)[:-1] + "," + json.dumps(key) + ":1}"

    def is_refused(plan: GuardPlan) -> bool:
        state, data, number = start(JSON), text.encode(), 0
        try:
            while data:
                size = splits[number % len(splits)]
                state, data, number = feed(plan, state, data[:size]), data[size:], number + 1
        except RepetitionError:
            return True
        return False

    assert is_refused(EVERY_KEY_ONCE) == is_refused(SCANNED) == (key in value)


def test_where_an_outer_container_would_matter_nothing_is_told() -> None:
    state = feed(EVERY_KEY_ONCE, start(JSON), b'[{"a":{"b":1')
    assert key_steps.after(state, b"}") is not None
    assert key_steps.after(state, b"}}") is None
    assert key_steps.after(state, b"},") is not None
    assert told(feed(EVERY_KEY_ONCE, state, b"}},{")) == told(
        feed(SCANNED, feed(SCANNED, start(JSON), b'[{"a":{"b":1'), b"}},{")
    )


def test_it_is_really_looked_up() -> None:
    state = feed(EVERY_KEY_ONCE, start(JSON), b'{"a":1,"')
    following = key_steps.after(state, b'b":{"')
    assert following is not None
    assert [sorted(frame.seen) for frame in following.frames] == [["a", "b"], []]
    assert following.text == b'"'
