from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.families.wire import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1, "a": 2}',
        "[1.0, 1e400, -0, 1E+2, 0.10]",
        "9" * 5000,
        '{"id": 12345678901234567890123}',
        '"\\u0000é"',
        "[]",
        "{}",
        "true",
    ],
)
def test_what_was_read_is_printed_back_with_the_same_order_and_digits(text: str) -> None:
    assert json_text.dumps(json_text.loads(text)) == text


@given(VALUES, st.sampled_from([None, "", "  "]), st.booleans())
def test_layout_is_that_of_the_standard_library(value: object, indent: str | None, sort_keys: bool) -> None:
    ours = json_text.dumps(value, item_separator=",", indent=indent, sort_keys=sort_keys)
    assert ours == json.dumps(
        value, ensure_ascii=False, separators=(",", ": "), indent=indent, sort_keys=sort_keys
    )


def test_numbers_behave_as_numbers_in_a_template() -> None:
    one, big = json_text.loads("[1.0, " + "9" * 5000 + "]")
    assert one + 1 == 2
    assert big == float("inf")
    assert f"{one}" == "1.0"


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", ""])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        json_text.loads(text)


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        json_text.dumps(value)
