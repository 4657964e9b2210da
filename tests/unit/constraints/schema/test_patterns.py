"""ECMA 262 patterns as languages, checked against Python's ``re`` where the two agree."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from interlock.constraints.schema.text.counts import guesses_counts
from interlock.constraints.schema.text.derive import is_empty
from interlock.constraints.schema.text.ecma import search
from interlock.constraints.schema.text.ecma_syntax import PatternError
from interlock.constraints.schema.text.emit import terminal as spell
from interlock.constraints.schema.text.json_spelling import JsonSpelling
from interlock.constraints.schema.text.lang import ANY, Matcher, both, length, negate, words

TEXTS = ["".join(item) for size in range(5) for item in itertools.product("abo", repeat=size)] + [
    "foo", "a foo b", "afoob", "foo.", "a1", "12 ", "-a", "x-1", "foo bar", "a 1", "a-1", "\n", "foo-foo", " ", "A",
]  # fmt: skip

PATTERNS = [
    "b", "^[a-c]{2,3}$", "^(?=.*[0-9])[a-z0-9]+$", "^(?!foo)[a-z]+$", r"\bfoo\b", "^foo|bar$", "^(foo|bar)?$", "(a|b)*c",
    "^$", "", "a$|^b", "(^a|b)*c$", "^(a$|b)*", "(?:^|a)b", "^((?!ab).)*$", r"\Ba", "^a*?b{2,}$", "a(?=b)c|ab", "(?!a)",
    r"^\b", r"b\b", r"(\bfoo|a){1,2}$", "^[^a-b]+$", "^(?=a)(?!ab).*$", r"\w+\b[ -]\d", "^(a|b$){2}$", r"^\S+\s\S+$",
    "^[ab]{0}o", "[^]x]|a", "^(?:a|(?:b|o)+)$", "^[\\w-]+$", "a{1}b{0,1}o?", "a{1,3}", "b[ao]{2,}", "o?ab*", "^(?:a+b+){0,2}a+$", "^(ab){1,2}a$", "^(?:ab?)*a", "^((?!ab)(?!o).)*$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_where_the_reference_engine_does(pattern: str) -> None:
    reference = re.compile(pattern.replace("$", r"\Z").replace("[^]x]", r"[\s\S]x\]"), re.ASCII)
    matcher = Matcher(search(pattern))
    wrong = [text for text in TEXTS if matcher.accepts(text) != bool(reference.search(text))]
    assert wrong == []


@pytest.mark.parametrize(
    ("pattern", "accepted", "rejected"),
    [
        (r"^\p{L}+$", ["aé", "日"], ["a1"]),
        (r"^\p{Lu}\P{Lu}$", ["Ab"], ["AB"]),
        (r"^\u{1F600}$", ["😀"], ["a"]),
        ("^[\\ud83d\\ude00-\\ud83d\\ude4f]$", ["😀"], ["a"]),
        (r"^\x41\cJ$", ["A\n"], ["A"]),
        (r"^\s$", ["\u00a0", "\ufeff", "\t"], ["a"]),
        ("^.$", ["é"], ["\n", "\u2028"]),
        (r"^(?<year>\d{4})$", ["2024"], ["24"]),
        (r"^hello\!$", ["hello!"], ["hello", r"hello\!"]),
        (
            r"^(?!__.*__$)[^\p{Cc}\p{Cf}./\[\]]{1,200}$",
            ["notes_1", "__x"],
            ["__x__", "a.b", "a\u200d", "[", ""],
        ),
    ],
)
def test_unicode_and_escapes(pattern: str, accepted: list[str], rejected: list[str]) -> None:
    matcher = Matcher(search(pattern))
    assert all(map(matcher.accepts, accepted))
    assert not any(map(matcher.accepts, rejected))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        "(?<=a)b",
        "(?<!a)b",
        "(",
        "a)",
        "[",
        "*",
        r"\Z",
        "a{,3}",
        "a++",
        "(?>a)",
        r"\p{Foo}",
        r"\p{Script=Greek}",
        "a{2,1}",
        "(?i)a",
    ],
)
def test_what_is_not_regular_or_not_ecma_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        search(pattern)


CHARACTERS = ["", "a", '"', "\\", "\n", "\0", "\x01\x1f", "\x7f", "/", 'a"b\\c\td', "é", "日本", "😀", "~", "-", "[", "&", "#",
              "\u00a0", "\ud7ff", "\ue000", "\uffff", "\U0010ffff", "ab", "foo"]  # fmt: skip


@pytest.mark.parametrize(
    "pattern", ["b", "^[^a]+$", "^.$", r"^\S+$", '^"', r"\bfoo\b", "(?!foo)", "[/#&~]", r"^[\x00-\x1f]+$"]
)
def test_spelling_keeps_the_language_in_every_boolean_combination(pattern, terminal) -> None:
    import json

    found = search(pattern)
    for lang in (found, negate(found), both(found, length(1, 2)), both(negate(found), length(0, 2))):
        grammar, matcher = terminal(spell(lang, JsonSpelling())), Matcher(lang)
        for text in CHARACTERS:
            for ascii_only in (True, False):
                spelled = json.dumps(text, ensure_ascii=ascii_only)
                assert grammar.accepts(spelled) == matcher.accepts(text), (spelled, ascii_only)


@pytest.mark.parametrize(
    "bad",
    [
        '"\t"',
        '"\0"',
        '"a',
        '"\\x"',
        '"\\\'"',
        '"\\u0061"',
        '"\\ud83d"',
        '"\\ude00"',
        '"\\u00E9"',
        '"\\u00"',
        '"\\u"',
    ],
)
def test_any_string_is_still_json_in_its_one_spelling(bad, terminal) -> None:
    assert not terminal(spell(ANY, JsonSpelling())).accepts(bad)


def test_emptiness_is_exact() -> None:
    assert is_empty(both(search("^a+$"), search("b$")))
    assert is_empty(both(search("^[a-c]{3}$"), length(4, None)))
    assert not is_empty(both(search("^a+$"), length(1000, None)))
    assert not is_empty(both(search("b"), search("^a")))
    assert both(words(["a", "b", "abc"]), search("^a")) == words(["a", "abc"])


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        ("[a-z]{1,255}", "[a-z]"),
        ("a+b*", "a"),
        ("^a{2,9}", "^a{2}"),
        (r"^(?:\S+\s+){0,9}\S+$", r"^\S+(?:\s+\S+){0,9}$"),
    ],
)
def test_a_costly_form_of_a_pattern_becomes_a_cheap_one(pattern: str, same: str) -> None:
    assert search(pattern) == search(same)


@pytest.mark.parametrize(
    ("pattern", "guesses"),
    [
        (r"^(.{1,63}\.){1,127}$", True),
        (r"^(?=.{1,255}$)((.{1,63}-){1,127}[a-z]+)$", True),
        (r"^([a-z]{1,63}\.){1,127}$", False),
        (r"^(.{63}\.){1,127}$", False),
        (r"^(.{1,63}\.){1,3}$", False),
    ],
)
def test_counts_whose_end_must_be_guessed_are_known(pattern: str, guesses: bool) -> None:
    assert guesses_counts(search(pattern)) is guesses


def test_exactly_one_of_several_searches(language) -> None:
    found = language({"type": "string", "oneOf": [{"pattern": name} for name in ("abc", "bcd", "xyz")]})
    assert [text for text in ("abc", "a bcd", "xyzabc", "abcd", "", "ab", "abcabc") if found.accepts(json.dumps(text))] == [
        "abc", "a bcd", "abcabc",
    ]  # fmt: skip
    assert found.lark.count(" & ~") == 3, "terminals of their own, not one of all"
