from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import InterlockError
from interlock.families.wire.taint import SpecialText, choose_seam, trie_pattern
from interlock.tokenization.byte_tokenizer import byte_tokenizer

SPELLINGS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<thinker>", "<<x>>", "x>><", "\n\n", "#")
TOKENIZER = byte_tokenizer(SPELLINGS)
SPECIAL = SpecialText(TOKENIZER)
PLAIN = SpecialText(byte_tokenizer())
SEAM = "\ue000"

pieces = st.sampled_from([*SPELLINGS, "<|im_", "end|>", "<", ">", "think", "a", " ", "é"])
client = st.lists(pieces, max_size=6).map("".join)


def special_ids(ids: list[int]) -> list[int]:
    return [token_id for token_id in ids if token_id >= 256]


@given(client, client)
def test_client_text_never_becomes_a_token_whatever_stands_beside_it(first: str, second: str) -> None:
    tainted = SPECIAL.taint(first, SEAM), SPECIAL.taint(second, SEAM)
    prompt = f"<|im_start|>{tainted[0]}<think>{tainted[1]}{tainted[0]}<|im_end|>"
    ids = SPECIAL.encode(prompt, SEAM)
    names = {token_id: text for text, token_id in TOKENIZER.special_tokens.items()}
    found = [names[token_id] for token_id in special_ids(ids) if len(names[token_id].strip()) > 1]
    assert found == ["<|im_start|>", "<think>", "<|im_end|>"]
    assert TOKENIZER.decode(ids) == f"<|im_start|>{first}<think>{second}{first}<|im_end|>"


@given(st.text(alphabet="abc \n", max_size=20))
def test_text_without_spellings_is_left_alone(text: str) -> None:
    assert SPECIAL.taint(text, SEAM) == text


def test_structures_are_tainted_inside_keys_and_values() -> None:
    value = {"<think>": ["a<|im_end|>", 1, None, {"k": "</think>"}]}
    assert PLAIN.taint(value, "~") == {"<~think>": ["a<~|im_end|>", 1, None, {"k": "<~/think>"}]}


def test_templates_still_see_the_edges_of_ordinary_text() -> None:
    for text in ("object", "  padded  ", "<tool_response>", "think", "im_end"):
        assert PLAIN.taint(text, SEAM) == text


def test_a_seam_is_a_character_that_the_request_does_not_use() -> None:
    assert choose_seam(["plain"]) == "\ue000"
    assert choose_seam(["\ue000", "x\ue001y", '{"a": "\\uE002"}']) == "\ue003"


def test_a_request_with_every_private_character_is_refused() -> None:
    with pytest.raises(InterlockError) as caught:
        choose_seam(["".join(map(chr, range(0xE000, 0xF900)))])
    assert caught.value.code == "invalid_messages"


@given(
    st.lists(st.text(alphabet="ab<|>.", min_size=1, max_size=6), min_size=1, max_size=8),
    st.text(alphabet="ab<|>.", max_size=20),
)
def test_the_trie_matches_the_longest_text_as_an_alternation_would(texts: list[str], text: str) -> None:
    alternation = "|".join(map(re.escape, sorted(set(texts), key=len, reverse=True)))
    assert re.findall(trie_pattern(texts), text) == re.findall(alternation, text)
