"""Masks and arrays of ids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.constraints import bitmask

SIZE = 100


@given(allowed=st.sets(st.integers(0, SIZE - 1)), asked=st.lists(st.integers(0, SIZE - 1), unique=True))
def test_ids_are_asked_about_and_cleared_together_as_one_by_one(allowed: set[int], asked: list[int]) -> None:
    row = bitmask.of_ids(SIZE, allowed)
    ids = np.array(asked, dtype=np.int64)
    assert bitmask.are_allowed(row, ids).tolist() == [bitmask.is_allowed(row, one) for one in asked]
    assert bitmask.those_allowed(row, ids).tolist() == [one for one in asked if one in allowed]
    bitmask.clear_all(row, ids)
    assert bitmask.allowed_ids(row) == sorted(allowed.difference(asked))


@pytest.mark.parametrize("token_id", [0, 31, 32, 63, 99])
def test_bits_at_the_ends_of_words(token_id: int) -> None:
    row = bitmask.all_allowed(SIZE)
    bitmask.clear_all(row, np.array([token_id]))
    assert bitmask.allowed_ids(row) == [one for one in range(SIZE) if one != token_id]
