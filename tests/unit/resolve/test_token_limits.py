from __future__ import annotations

import pytest

from interlock.core.sampling import SamplingOptions, TokenLimits
from interlock.errors import InterlockError
from interlock.families.qwen3 import FAMILY
from interlock.resolve.decoding import resolve_decoding
from interlock.resolve.max_tokens import resolve_max_tokens
from interlock.resolve.token_limits import MAX_BAD_WORDS, MAX_STOP_TOKEN_IDS
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
OWN = (257, 258)  # <|im_end|>, <|endoftext|>


def limits_of(**fields: object) -> TokenLimits:
    return resolve_decoding(SamplingOptions(**fields), FAMILY, TOKENIZER).limits  # type: ignore[arg-type]


def test_a_request_that_says_nothing_has_no_limits():
    assert limits_of() == TokenLimits()


LIMITS = {
    "min tokens": ({"min_tokens": 3}, TokenLimits(min_tokens=3)),
    "the model's own ends": ({"ignore_eos": True}, TokenLimits(suppressed=OWN)),
    "but not those that the request names": (
        {"ignore_eos": True, "stop_token_ids": (258, 5)},
        TokenLimits(suppressed=(257,)),
    ),
    "a word alone and behind a space": (
        {"bad_words": ("ab",)},
        TokenLimits(banned=(tuple(b"ab"), tuple(b" ab"))),
    ),
    "a word with its own space": ({"bad_words": (" ab",)}, TokenLimits(banned=(tuple(b" ab"),))),
    "a marker is banned as text": (
        {"bad_words": (" <think>",)},
        TokenLimits(banned=(tuple(b" <think>"),)),
    ),
    "ids in order, once": ({"allowed_token_ids": (9, 3, 9)}, TokenLimits(allowed=(3, 9))),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits(case):
    fields, expected = LIMITS[case]
    assert limits_of(**fields) == expected


def test_stop_token_ids_come_behind_the_models_own():
    assert resolve_decoding(SamplingOptions(), FAMILY, TOKENIZER).stop_ids == OWN
    assert resolve_decoding(SamplingOptions(stop_token_ids=(5, 257)), FAMILY, TOKENIZER).stop_ids == (*OWN, 5)


SIZE = TOKENIZER.vocabulary.size
WRONG = [
    ("min_tokens", -1),
    ("bad_words", ("",)),
    ("bad_words", ("a", "  ")),
    ("bad_words", ("\ud800",)),
    ("bad_words", ("a",) * (MAX_BAD_WORDS + 1)),
    ("bad_words", ("a" * 10_000,)),
    ("allowed_token_ids", (0, SIZE)),
    ("allowed_token_ids", (-1,)),
    ("stop_token_ids", (SIZE,)),
    ("stop_token_ids", (-5,)),
    ("stop_token_ids", (1,) * (MAX_STOP_TOKEN_IDS + 1)),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_what_is_wrong_is_refused_by_name(field, value):
    with pytest.raises(InterlockError) as refused:
        limits_of(**{field: value})
    assert (refused.value.code, refused.value.param) == ("invalid_value", field)


@pytest.mark.parametrize(("requested", "default"), [(4, None), (None, 4), (None, None)])
def test_min_tokens_must_fit_in_what_is_generated(requested, default):
    most = resolve_max_tokens(requested, 96, 100, default, min_tokens=4)
    assert most == 4
    with pytest.raises(InterlockError, match="min_tokens is 5, but at most 4") as refused:
        resolve_max_tokens(requested, 96, 100, default, min_tokens=5)
    assert refused.value.param == "min_tokens"
