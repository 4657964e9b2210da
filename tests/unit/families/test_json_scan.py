from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.families.wire.json_scan import JsonError, JsonScanner

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def scan(text: str, *cuts: int) -> int | str:
    """Where the value ended, "open", or "bad at"."""
    scanner = JsonScanner()
    edges = [0, *cuts, len(text)]
    for start, end in itertools.pairwise(edges):
        try:
            pos = scanner.feed(text[start:end], 0)
        except JsonError as error:
            return f"bad at {start + error.at}"
        if scanner.done:
            return start + pos
    return "open"


@given(VALUES, st.data(), st.booleans(), st.sampled_from([None, 1]))
def test_every_document_is_read_to_its_end_under_any_split(
    value: object, data: st.DataObject, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps([value], ensure_ascii=ascii_only, indent=indent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    assert scan(text + "tail", *cuts) == len(text)


@given(st.text(alphabet='{}[]",:\\u0a1-.e+ tn\x01', max_size=12), st.data())
def test_it_agrees_with_the_standard_library_on_what_json_is(text: str, data: st.DataObject) -> None:
    text = f"[{text}]"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    result = scan(text, *cuts)
    assert result == scan(text)
    try:
        json.loads(text)
    except ValueError:
        assert result != len(text)
    else:
        assert result == len(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("{1", 1),
        ('{"a" 1', 5),
        ("[1,]", 3),
        ('"\\x"', 2),
        ('"\t"', 1),
        ("01", 1),
        ("[-]", 2),
        ("[trve", 3),
        ("x", 0),
    ],
)
def test_the_first_wrong_character_is_named(text: str, at: int) -> None:
    assert scan(text) in (f"bad at {at}", at)


def test_depth_has_no_limit_of_recursion() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert scan(text) == len(text)
