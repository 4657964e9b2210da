"""Whether keys that have begun can always become new ones: what the shape of a pattern tells is what its automaton tells."""

from __future__ import annotations

import itertools

import pytest

from interlock.constraints.schema.text import growth
from interlock.constraints.schema.text.ecma import search

PARTS = (
    "ab",
    "[a-c]",
    "a*",
    "[ab]{2,3}",
    "(ab)?",
    "(a|b*)",
    "(a{2}b)*",
    "(-[ab]{1,2})+",
    "(b+c?)?",
    "(a|(ba)*)",
    "(a?b){0,2}",
)

_LANG_TAG = (
    "^(name_(((([A-Za-z]{2,3}(-([A-Za-z]{3}(-[A-Za-z]{3}){0,2}))?)|[A-Za-z]{4}|[A-Za-z]{5,8})(-([A-Za-z]{4}))?(-([A-Za-z]{2}|[0-9]{3}))?"
    "(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(-([0-9A-WY-Za-wy-z](-[A-Za-z0-9]{2,8})+))*(-(x(-[A-Za-z0-9]{1,8})+))?)"
    "|(x(-[A-Za-z0-9]{1,8})+)))$"
)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_shape_and_automaton_agree(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(growth, "_MAX_STATES", 2_000)
    num_growing = 0
    for parts in itertools.product(PARTS, repeat=size):
        lang = search(f"^{''.join(parts)}$")
        by_states = growth._grows_by_states(lang)
        growth.always_grows.cache_clear()
        assert growth.always_grows(lang) == by_states, parts
        num_growing += by_states
    assert num_growing > 2


@pytest.mark.parametrize(
    ("pattern", "grows"),
    [
        ("^x-", True),
        ("^a*b$", False),  # nothing follows b
        ("^(a*b|c)$", False),
        ("^a*(bc)?$", False),
        ("^a*(bc*)?$", True),
        ("^[A-Z]{3}$", False),
        (_LANG_TAG, True),
    ],
)
def test_keys_of_a_pattern(pattern: str, grows: bool) -> None:
    assert growth.always_grows(search(pattern)) == grows


def test_a_pattern_of_many_states_is_told_by_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_MAX_STATES", 1)
    growth.always_grows.cache_clear()
    assert growth.always_grows(search(_LANG_TAG))
