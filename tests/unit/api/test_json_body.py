from __future__ import annotations

import json

import pytest

from interlock.api.json_body import KEPT, JsonText, Shape, decode_object, nesting, parse_text
from interlock.errors import InterlockError

SHAPE: Shape = {"schema": KEPT, "list": [{"schema": KEPT}]}


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1.0, "a": 1e400}',
        '{"maximum": 123456789012345678901234567890}',
        '{"multipleOf":0.10}',
        '{"enum": ["\\u00e9", "é", -0, 1E5]}',
        "true",
        '"text"',
        "12",
        "[1, 2]",
    ],
)
def test_a_kept_value_is_the_text_the_client_sent(text: str) -> None:
    body = f'{{"schema" :\n {text} , "list":[{{"schema":{text}}}]}}'.encode()
    data = decode_object(body, SHAPE, max_nesting=10)
    assert data["schema"] == text
    assert data["list"][0]["schema"] == text
    assert isinstance(data["schema"], JsonText)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{}", "object"),
        ("[]", "array"),
        ('"x"', "string"),
        ("-1", "number"),
        ("true", "boolean"),
        ("null", "null"),
    ],
)
def test_a_text_knows_its_kind(text: str, kind: str) -> None:
    assert parse_text(f" {text}\n", max_nesting=5).kind == kind


def test_null_is_none_also_where_text_is_kept() -> None:
    assert decode_object(b'{"schema":null}', SHAPE, max_nesting=5) == {"schema": None}


def test_a_wrong_type_on_the_way_to_a_kept_value_is_decoded_as_it_is() -> None:
    assert decode_object(b'{"list":{"schema":1}}', SHAPE, max_nesting=5) == {"list": {"schema": 1}}


def test_the_last_of_repeated_keys_counts() -> None:
    assert decode_object(b'{"a":1,"a":2,"schema":1,"schema":2}', SHAPE, max_nesting=5) == {
        "a": 2,
        "schema": "2",
    }


def test_big_integers_are_exact() -> None:
    number = 3**200
    assert decode_object(f'{{"n":{number}}}'.encode(), None, max_nesting=5) == {"n": number}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b"  ", "empty"),
        (b"[]", "must be a JSON object"),
        (b'"x"', "must be a JSON object"),
        (b'{"a":NaN}', "not valid JSON"),
        (b'{"a":-Infinity}', "not valid JSON"),
        (b'{"schema":{"a":NaN}}', "not valid JSON"),
        (b'{"schema":{"a":1,}}', "not valid JSON"),
        (b'{"a":1} x', "not valid JSON"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"schema":"\xff"}', "not UTF-8"),
        (b'\xef\xbb\xbf{"a":1}', "not valid JSON"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"a":' + b"9" * 10_000 + b"}", "not valid JSON"),
        (b'{"a":' + b"[" * 50 + b"]" * 50 + b"}", "nested deeper than 20"),
        (b"[" * 1_000_000, "nested deeper than 20"),
        (b'{"a":' * 1_000_000, "nested deeper than 20"),
    ],
)
def test_what_is_no_bounded_json_object_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(InterlockError, match=reason) as caught:
        decode_object(body, SHAPE, max_nesting=20)
    assert caught.value.code == "invalid_json"


@pytest.mark.parametrize(
    ("value", "depth"),
    [
        ({}, 1),
        ([[]], 2),
        ({"a": "[[[["}, 1),
        ({"a": '"[[[['}, 1),
        ({"a": "\\", "b": [[]]}, 3),
        ({"a": '\\"', "b": [[]]}, 3),
        ({"a": '\\\\"[', "b": [1]}, 2),
        ({'[\\"[': [{}, {}, [[1]]]}, 4),
        ([{"a": [1, 2]}, [], {}], 3),
    ],
)
def test_nesting_counts_brackets_outside_strings(value: object, depth: int) -> None:
    assert nesting(json.dumps(value).encode()) == depth
