from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.tokenization.byte_tokenizer import DEFAULT_SPECIAL_TOKENS, byte_tokenizer

TOKENIZER = byte_tokenizer()


@given(st.text())
def test_plain_text_is_its_bytes(text: str) -> None:
    assert bytes(TOKENIZER.encode_text(text)) == text.encode()
    assert TOKENIZER.decode(TOKENIZER.encode_text(text)) == text


@given(st.lists(st.one_of(st.text(), st.sampled_from(DEFAULT_SPECIAL_TOKENS))))
def test_special_tokens_are_found_and_everything_decodes(pieces: list[str]) -> None:
    text = "".join(pieces)
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert sum(token_id >= 256 for token_id in ids) >= sum(piece in DEFAULT_SPECIAL_TOKENS for piece in pieces)


def test_the_longest_spelling_wins() -> None:
    tokenizer = byte_tokenizer(["<a", "<a>"])
    assert tokenizer.encode("<a><a") == [257, 256]


def test_defaults_say_what_is_hidden_and_what_ends_a_turn() -> None:
    vocabulary = TOKENIZER.vocabulary
    names = [vocabulary.tokens[token_id].decode() for token_id in sorted(vocabulary.control_ids)]
    assert names == ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    assert [vocabulary.tokens[token_id] for token_id in vocabulary.stop_ids] == [
        b"<|im_end|>",
        b"<|endoftext|>",
    ]
    assert vocabulary.size == 256 + len(DEFAULT_SPECIAL_TOKENS)


def test_there_may_be_no_special_tokens() -> None:
    assert byte_tokenizer([]).encode("<|im_end|>") == list(b"<|im_end|>")


def test_malformed_bytes_decode_to_the_replacement_character() -> None:
    assert TOKENIZER.decode([0xC3, 0x28]) == "\ufffd("
