"""Characters of strings and keys as JSON has them: whole UTF-8, control characters escaped, nothing normalised."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import SchemaOptions, schema_grammar
from interlock.core.constraint import JsonValue
from interlock.tokenization.byte_tokenizer import byte_tokenizer

CONTROLS = [chr(code) for code in range(0x20)]
PLACES: dict[str, tuple[dict[str, Any], str]] = {
    "any string": ({"type": "string"}, '"a{}b"'),
    "a pattern": ({"type": "string", "pattern": "^[^x]+$"}, '"a{}b"'),
    "a length": ({"type": "string", "minLength": 3, "maxLength": 3}, '"a{}b"'),
    "any key": ({"type": "object"}, '{{"a{}b":1}}'),
    "a key of a pattern": ({"type": "object", "patternProperties": {"^a": {}}}, '{{"a{}b":1}}'),
    "a key beside names": ({"type": "object", "propertyNames": {"minLength": 2}}, '{{"a{}b":1}}'),
}


@pytest.mark.parametrize("place", PLACES)
def test_control_characters_are_written_as_escapes_only(place: str, language) -> None:
    schema, text = PLACES[place]
    found = language(schema)
    assert [raw for raw in CONTROLS if found.takes(text.format(raw))] == []
    assert [raw for raw in CONTROLS if not found.takes(text.format(json.dumps(raw)[1:-1]))] == []
    assert found.takes(text.format("\x7f"))


@pytest.mark.parametrize("control", ["\t", "\n", "\0", "\x1f"])
def test_listed_texts_and_names_are_escaped_too(control: str, language) -> None:
    name = f"a{control}b"
    for schema, document in (
        ({"enum": [name, 1]}, name),
        ({"const": name}, name),
        ({"properties": {name: {}}}, {name: 1}),
    ):
        found = language({**schema, "type": ["string", "object"]}, SchemaOptions())
        escaped = json.dumps(document, separators=(",", ":"))
        assert found.takes(escaped)
        assert not found.takes(escaped.replace(json.dumps(name), f'"{name}"'))


BYTES = [
    (b"\xf0\x9f\x98\x80", True),
    (b"\xf4\x8f\xbf\xbf", True),
    (b"\xed\x9f\xbf", True),
    (b"\xf0\x80\x80\x80", False),  # overlong
    (b"\xe0\x80\xaf", False),
    (b"\xc0\xaf", False),
    (b"\xc1\xbf", False),
    (b"\xed\xa0\x80", False),  # a surrogate
    (b"\xf4\x90\x80\x80", False),  # beyond Unicode
    (b"\xf5\x80\x80\x80", False),
    (b"\x80", False),
    (b"\xff", False),
    (b"\xf0\x9f", False),  # cut short
    (b"\xf0\x9f\x98", False),
]


@pytest.mark.parametrize("schema", [
    {"type": "string"},
    {"type": "string", "pattern": "^[^a]*$"},
    {"type": "string", "maxLength": 1},
    {"type": "object", "additionalProperties": {"type": "null"}},
], ids=["string", "pattern", "length", "key"])  # fmt: skip
def test_bytes_of_a_string_are_well_formed(schema: dict[str, Any]) -> None:
    before, after = (b'"', b'"') if schema["type"] == "string" else (b'{"', b'": null}')
    grammar = schema_grammar(JsonValue(json.dumps(schema)), "j")
    compiled = LLGuidanceProvider(byte_tokenizer()).compile(f"start: {grammar.start}\n{grammar.lark}")
    for data, is_legal in BYTES:
        text = list(before + data + after)
        assert (compiled.matcher().validate(text) == len(text)) is is_legal, data


def test_a_range_of_characters_has_exactly_their_bytes() -> None:
    grammar = schema_grammar(JsonValue('{"type": "string", "pattern": "^[😀-🙏]+$"}'), "j")
    compiled = LLGuidanceProvider(byte_tokenizer()).compile(f"start: {grammar.start}\n{grammar.lark}")
    legal: set[bytes] = set()
    for third in range(256):
        begun = [0x22, 0xF0, 0x9F, third]
        if compiled.matcher().validate(begun) == 4:
            ends = (last for last in range(256) if compiled.matcher().validate([*begun, last]) == 5)
            legal |= {bytes([*begun[1:], last]) for last in ends}
    assert compiled.matcher().validate([0x22, 0xF0, 0x80]) == 2
    assert legal == {chr(code).encode() for code in range(ord("😀"), ord("🙏") + 1)}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_that_only_look_alike_are_different(form: Any, language) -> None:
    meant = unicodedata.normalize(form, "naïve")
    other = unicodedata.normalize("NFD" if form == "NFC" else "NFC", meant)
    found = language(
        {"properties": {meant: {"enum": [meant]}}, "required": [meant], "additionalProperties": False}
    )
    for ascii_only in (False, True):

        def spelled(key: str, value: str, ascii_only: bool = ascii_only) -> str:
            return json.dumps({key: value}, separators=(",", ":"), ensure_ascii=ascii_only)

        assert found.accepts(spelled(meant, meant))
        assert not found.accepts(spelled(other, meant))
        assert not found.accepts(spelled(meant, other))
