"""What a request says about single tokens: which are not chosen, and which end the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from interlock.core.sampling import SamplingOptions, TokenLimits
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.resolve.text import require_unicode

MAX_BAD_WORDS = 256
MAX_BAD_WORD_CHARACTERS = 8192
MAX_STOP_TOKEN_IDS = 256


def resolve_token_limits(
    options: SamplingOptions, tokenizer: Tokenizer, own_stop_ids: Sequence[int]
) -> TokenLimits:
    """own_stop_ids: what ends the model's turn. Raises ``invalid_value`` with the name of the field."""
    min_tokens = options.min_tokens or 0
    if min_tokens < 0:
        _refuse("min_tokens", f"min_tokens must be at least 0, not {min_tokens}")
    _check_ids("allowed_token_ids", options.allowed_token_ids, tokenizer.vocabulary.size)
    # The request's own stop ids are the end that it asks for.
    suppressed = set(own_stop_ids).difference(options.stop_token_ids) if options.ignore_eos else ()
    return TokenLimits(
        banned=_bad_words(options.bad_words, tokenizer),
        allowed=tuple(sorted(set(options.allowed_token_ids))),
        min_tokens=min_tokens,
        suppressed=tuple(sorted(suppressed)),
    )


def resolve_stop_ids(
    token_ids: tuple[int, ...], own_stop_ids: tuple[int, ...], vocab_size: int
) -> tuple[int, ...]:
    """The ids that end an answer: the model's own and those that the request names. Raises ``invalid_value``."""
    if len(token_ids) > MAX_STOP_TOKEN_IDS:
        _refuse("stop_token_ids", f"stop_token_ids may have at most {MAX_STOP_TOKEN_IDS} ids")
    _check_ids("stop_token_ids", token_ids, vocab_size)
    return tuple(dict.fromkeys(own_stop_ids + token_ids))


def _bad_words(words: tuple[str, ...], tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """Each word as the tokenizer writes it at the start of a text and behind a space."""
    if len(words) > MAX_BAD_WORDS or sum(map(len, words)) > MAX_BAD_WORD_CHARACTERS:
        _refuse(
            "bad_words",
            f"bad_words may have at most {MAX_BAD_WORDS} words with {MAX_BAD_WORD_CHARACTERS} characters in all",
        )
    found: dict[tuple[int, ...], None] = {}
    for word in words:
        require_unicode(word, code="invalid_value", param="bad_words")
        if not word.strip():
            _refuse("bad_words", "bad_words must not have an empty or a blank one")
        for spelling in (word, f" {word.lstrip()}"):
            found[tuple(tokenizer.encode_text(spelling))] = None
    return tuple(found)


def _check_ids(param: str, token_ids: Sequence[int], vocab_size: int) -> None:
    wrong = next((one for one in token_ids if not 0 <= one < vocab_size), None)
    if wrong is not None:
        _refuse(param, f"{param} names token {wrong}, the vocabulary has {vocab_size} tokens")


def _refuse(param: str, message: str) -> NoReturn:
    raise InterlockError("invalid_value", message, param=param)
