from __future__ import annotations

import ipaddress
import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from interlock.constraints.schema import SchemaOptions
from interlock.constraints.schema.text.formats import PATTERNS
from interlock.constraints.schema.text.formats import language as strings_of
from interlock.constraints.schema.text.lang import Matcher

CASES = {
    "date": (["2024-02-29", "2000-02-29", "2024-12-31"], ["2023-02-29", "1900-02-29", "2024-04-31", "0000-01-01", "2024-1-1"]),
    "time": (["03:04:05Z", "23:59:60Z", "12:00:00.5+01:30"], ["25:00:00Z", "12:00:60Z", "12:00:00"]),
    "date-time": (["2024-01-02T03:04:05Z"], ["2024-13-02T03:04:05Z", "2024-01-02"]),
    "duration": (["P1DT2H", "P1W", "P1Y2M3DT4H5M6S"], ["1D", "P", "PT", "P1Y1D"]),
    "email": (["a@b.co", '"a b"@c.d', "a@[127.0.0.1]"], ["ab", "a..b@c", "@b"]),
    "hostname": (["a.example", "a" * 63, "a--b.com"], ["-a-", "a" * 64, "a." * 130 + "a", ""]),
    "ipv4": (["1.2.3.4"], ["1.2.3.400", "01.2.3.4", "1.2.3"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000"], ["x"]),
    "uri": (["http://a.b/c?d#e", "mailto:x@y", "http://[::1]:80/", "urn:a:b"], ["a b", "/a", "http://é.b/", ":a"]),
    "uri-reference": (["/a/b", "", "#a", "a/b:c"], ["\\\\a b", "1:b"]),
    "iri": (["http://é.b/"], ["a b"]),
    "uri-template": (["http://e.com/{a}", "{?x*,y:3}", "a'b"], ["{a", "a b"]),
    "json-pointer": (["", "/a/b", "/~0~1", '/é"'], ["a", "/~2"]),
    "regex": (["a+", "^[a-z0-9_]+$", "(?:a|b)*", "a{1,2}", "^(?!x)[^\\s]+$", ""], ["a(", "^(abc]", "*a", "a{2,1}", "[z-a]", "\\a"]),
    "relative-json-pointer": (["0", "1/a", "0#"], ["01", "-1", "/a"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_format_admits_what_its_standard_admits(name: str) -> None:
    found = strings_of(name)
    assert found is not None
    matcher = Matcher(found)
    valid, invalid = CASES[name]
    assert [text for text in valid if not matcher.accepts(text)] == []
    assert [text for text in invalid if matcher.accepts(text)] == []


# a walk seldom finds the end of an address or a duration
@pytest.mark.parametrize("name", sorted(set(PATTERNS) - {"email", "duration"}))
def test_what_is_generated_for_a_format_is_valid_to_another_library(
    name: str, language: Callable[..., Any]
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": name}}, "required": ["a"]}
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    found, chooser = language(schema, SchemaOptions()), random.Random(1)
    texts = [text for _ in range(12) if (text := found.walk(chooser)) is not None]
    assert texts
    assert [text for text in texts if not validator.is_valid(json.loads(text))] == []


def test_ipv6_agrees_with_the_standard_library() -> None:
    chooser = random.Random(1)
    found = strings_of("ipv6")
    assert found is not None
    matcher = Matcher(found)
    for _ in range(1500):
        groups = [chooser.choice(["1", "ab", "ffff", "0"]) for _ in range(chooser.randint(0, 8))]
        at = chooser.randint(0, len(groups))
        text = (
            ":".join(groups[:at]) + "::" + ":".join(groups[at:]) if chooser.random() < 0.7 else ":".join(groups)
        )
        try:
            ipaddress.IPv6Address(text)
            valid = True
        except ValueError:
            valid = False
        assert matcher.accepts(text) == valid, text


def test_unknown_formats_are_annotations() -> None:
    assert strings_of("foo-bar") is None
    assert strings_of("idn-hostname") is None
    assert all(strings_of(name) is not None for name in PATTERNS)
