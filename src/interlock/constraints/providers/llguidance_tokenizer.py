"""A tokenizer as llguidance wants it."""

from __future__ import annotations

import functools
from typing import Any, Final, cast

import llguidance

from interlock.core.tokenizer import Tokenizer

_TEXT: Final = r'[^"\\\x00-\x1F\x7F\x{2028}\x{2029}]'
SLICES: Final = [r"[\x20\x0A\x0D\x09]+", f"{_TEXT}{{1,10}}", f"{_TEXT}{{1,30}}", f"{_TEXT}+"]
"""The engine's own parts of the vocabulary, each allowed as a whole where a terminal takes any such text; without the line
separators, so that what ``.`` matches in a pattern of a schema does."""

_MAX_ENCODED = 4_096
_MAX_ENCODED_CHARS = 512
_UNSETTLED = 8
"""Tokens at the end of a text that was cut: what follows may spell them otherwise."""


def native_tokenizer(tokenizer: Tokenizer) -> llguidance.LLTokenizer:
    """Takes 1-4 s for a real vocabulary, which needs a stop id."""
    vocabulary = tokenizer.vocabulary
    return llguidance.LLTokenizer(
        cast("Any", _Wrapper(tokenizer)),
        n_vocab=vocabulary.size,
        eos_token=list(vocabulary.stop_ids),
        slices=SLICES,
    )


class _Wrapper:
    """What ``LLTokenizer`` wants to know of a tokenizer."""

    is_tokenizer_wrapper = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        vocabulary = tokenizer.vocabulary
        self.tokens = list(vocabulary.tokens)
        self.special_token_ids = sorted({*vocabulary.special_ids, *vocabulary.stop_ids})
        self.eos_token_id = vocabulary.stop_ids[0]
        self.bos_token_id = vocabulary.bos_id
        # asked at every forced position, in parallel fills with the GIL taken again; forced texts repeat
        self._encode = functools.lru_cache(_MAX_ENCODED)(lambda text: tuple(tokenizer.encode_text(text)))

    def __call__(self, text: str) -> list[int]:
        """Tokens of forced text, so that they are the canonical ones: of a long one the first. It is asked again behind each
        of them, so all of a long text each time would be the square of its length, with the GIL held."""
        if len(text) <= _MAX_ENCODED_CHARS:
            return list(self._encode(text))
        tokens = self._encode(text[:_MAX_ENCODED_CHARS])
        return list(tokens[: max(1, len(tokens) - _UNSETTLED)])
