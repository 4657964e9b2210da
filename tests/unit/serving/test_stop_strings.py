from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.serving.stop_strings import StopStrings


def reference(text: str, stops: list[str]) -> tuple[str, bool]:
    """The first stop string to be complete ends the text; of several, the longest."""
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            return text[: end - max(map(len, ending))], True
    return text, False


def feed(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    search, out = StopStrings(stops), ""
    for piece in pieces:
        out += search.push(piece)
        if search.matched:
            return out, True
    return out + search.flush(), False


@pytest.mark.parametrize(
    ("stops", "text", "expected"),
    [
        ([], "abc", "abc"),
        (["x"], "abc", "abc"),
        (["c"], "abcd", "ab"),
        (["abab"], "abaabab!", "aba"),
        (["bcd", "c"], "abcd", "ab"),
        (["bc", "abc"], "xabc", "x"),
        (["aab"], "aaab", "a"),
        (["\n\n"], "a\nb\n\nc", "a\nb"),
        (["🙂"], "a🙂b", "a"),
    ],
)
def test_the_text_ends_before_the_first_complete_stop_string(stops, text, expected):
    assert feed([text], stops)[0] == expected
    assert feed(list(text), stops)[0] == expected


@given(
    stops=st.lists(st.text("ab", min_size=1, max_size=5), max_size=4),
    pieces=st.lists(st.text("abc", max_size=6), max_size=8),
)
def test_any_cut_of_the_text_gives_what_the_whole_text_gives(stops, pieces):
    assert feed(pieces, stops) == reference("".join(pieces), stops)


def test_only_what_may_become_a_stop_string_is_held_back():
    search = StopStrings(["STOP"])
    assert search.push("go ST") == "go "
    assert search.push("A") == "STA"
    assert search.push("ST") == ""
    assert search.flush() == "ST"
    assert search.push("OP") == "OP"
    assert not search.matched


def test_a_long_near_miss_stays_linear():
    search = StopStrings(["a" * 4000 + "b"])
    assert len(search.push("a" * 200_000)) == 196_000
