from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.tokenizer import Vocabulary
from interlock.serving.detokenizer import Detokenizer, SpecialToken


def vocabulary(tokens: list[bytes], special: tuple[int, ...] = ()) -> Vocabulary:
    return Vocabulary(
        tokens=tuple(tokens), special_ids=frozenset(special), control_ids=frozenset(), stop_ids=()
    )


def text_of(tokens: list[bytes]) -> str:
    detokenizer = Detokenizer(vocabulary(tokens))
    return "".join(detokenizer.push(token_id)[0] for token_id in range(len(tokens))) + detokenizer.finish()


@given(st.text(), st.data())
def test_any_cut_of_a_text_into_tokens_gives_the_text(text, data):
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=10)))
    tokens = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert text_of(tokens) == text


@given(st.lists(st.binary(max_size=4)))
def test_malformed_bytes_give_what_decoding_the_whole_gives(tokens):
    assert text_of(tokens) == b"".join(tokens).decode(errors="replace")


def test_a_character_is_held_until_it_is_whole():
    fire = "🔥".encode()
    detokenizer = Detokenizer(vocabulary([fire[:1], fire[1:3], fire[3:] + b"!"]))
    assert [detokenizer.push(token_id)[0] for token_id in range(3)] == ["", "", "🔥!"]
    assert detokenizer.is_between_characters


def test_a_special_token_comes_apart_from_the_text_and_ends_a_broken_character():
    detokenizer = Detokenizer(vocabulary([b"a", b"\xf0\x9f", b"<tool_call>"], special=(2,)))
    assert detokenizer.push(0) == ("a", None)
    assert detokenizer.push(1) == ("", None)
    assert not detokenizer.is_between_characters
    assert detokenizer.push(2) == ("\ufffd", SpecialToken(2, "<tool_call>"))
    assert detokenizer.push(0) == ("a", None)


def test_ids_without_text_or_outside_the_vocabulary_are_silent():
    detokenizer = Detokenizer(vocabulary([b"a", b""]))
    assert [detokenizer.push(token_id) for token_id in (1, 0, 99)] == [("", None), ("a", None), ("", None)]
