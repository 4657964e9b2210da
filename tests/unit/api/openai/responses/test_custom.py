"""The input of a custom tool's call, out of JSON that arrives in any split."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.api.openai.responses.custom import InputReader, call_arguments
from interlock.errors import InterlockError


@given(st.text(max_size=30), st.booleans(), st.lists(st.integers(1, 4)))
def test_any_split_of_any_spelling_gives_the_input(text: str, ascii_only: bool, cuts: list[int]) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only)
    reader, out, pos = InputReader(), "", 0
    for size in [*cuts, *([1] * len(arguments))]:
        out += reader.push(arguments[pos : pos + size])
        pos += size
        out.encode()  # no half of a surrogate pair comes out
    assert out == text


def test_history_is_spelt_as_calls_are() -> None:
    assert call_arguments('a"é') == '{"input": "a\\"é"}'


def test_arguments_without_an_input_are_an_error() -> None:
    with pytest.raises(InterlockError):
        InputReader().push('{"other": "' + "a" * 200)
