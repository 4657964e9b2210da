from __future__ import annotations

import pytest

from interlock.constraints.literals import prefix_free, regex_literal


@pytest.mark.parametrize(
    ("literals", "expected"),
    [
        (["a", "b"], {"a": ("a",), "b": ("b",)}),
        (["\n", "\n</calls>"], {"\n": ("\n",), "\n</calls>": ("\n", "</calls>")}),
        (["a", "ab", "abc"], {"a": ("a",), "ab": ("a", "b"), "abc": ("a", "b", "c")}),
        (["aa", "aab", "b"], {"aa": ("aa",), "aab": ("aa", "b"), "b": ("b",)}),
        (["", "a"], {"a": ("a",)}),
    ],
)
def test_no_piece_is_a_proper_prefix_of_another(
    literals: list[str], expected: dict[str, tuple[str, ...]]
) -> None:
    assert prefix_free(literals) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("a/b", "/a\\/b/"), ("a\\/b", "/a\\/b/"), ("\n", "/\\n/"), ("\\\\/", "/\\\\\\//"), ("[/]", "/[\\/]/")],
)
def test_regex_literals_escape_the_delimiter_once(pattern: str, expected: str) -> None:
    assert regex_literal(pattern) == expected
