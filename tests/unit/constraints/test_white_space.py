"""Where white space may stand in a document, and how much of it: none around it, and no run without end."""

from __future__ import annotations

import json

import pytest

from interlock.constraints.bitmask import allocate, allowed_ids
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Matcher
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
PROVIDER = LLGuidanceProvider(TOKENIZER)
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "null"}}, "b": {"type": "boolean"}},
    "required": ["a", "b"],
}
DOCUMENT = ("{", '"a"', ":", "[", "null", ",", "null", "]", ",", '"b"', ":", "true", "}")
MOST = 40  # between two parts of a document


def matcher(*, flexible: bool, separators: tuple[str, str] = (",", ":")) -> Matcher:
    item, key = separators
    value = JsonValue(json.dumps(SCHEMA), item_separator=item, key_separator=key, flexible_whitespace=flexible)
    return PROVIDER.compile(lower(ConstraintSpec(root=value), {}).grammar).matcher()


def takes(text: str, *, flexible: bool) -> bool:
    found, ids = matcher(flexible=flexible), TOKENIZER.encode(text)
    if found.validate(ids) < len(ids):
        return False
    for token_id in ids:
        found.accept(token_id)
    return found.is_accepting


@pytest.mark.parametrize("place", range(len(DOCUMENT) + 1))
def test_white_space_stands_only_inside_and_only_where_it_was_asked_for(place: int) -> None:
    for white in (" ", "\n", "\t", "\n  "):
        text = "".join(DOCUMENT[:place]) + white + "".join(DOCUMENT[place:])
        assert not takes(text, flexible=False)
        assert takes(text, flexible=True) is (0 < place < len(DOCUMENT))
    endless = "".join(DOCUMENT[:place]) + " " * (MOST + 1)
    assert matcher(flexible=True).validate(TOKENIZER.encode(endless)) < len(endless)


@pytest.mark.parametrize(
    ("separators", "said", "next_bytes"),
    [
        ((",", ":"), "", "{"),
        ((",", ":"), '{"a":', "["),
        ((",", ":"), '{"a":[null', ",]"),
        ((",", ":"), '{"a":[],', '"'),
        ((", ", ": "), '{"a":', " "),
        ((", ", ": "), '{"a": [],', " "),
        ((", ", ": "), '{"a": [], ', '"'),
    ],
)
def test_fixed_spacing_is_the_one_that_was_asked_for(
    separators: tuple[str, str], said: str, next_bytes: str
) -> None:
    found = matcher(flexible=False, separators=separators)
    for token_id in TOKENIZER.encode(said):
        found.accept(token_id)
    row = allocate(1, TOKENIZER.vocabulary.size)[0]
    found.fill(row)
    assert bytes(allowed_ids(row)) == next_bytes.encode()
