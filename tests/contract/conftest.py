"""Vocabularies for families: bytes, and the special tokens that a model of the family has."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from interlock.core.tokenizer import Tokenizer
from interlock.families.base import ModelFamily
from interlock.tokenization.byte_tokenizer import byte_tokenizer

_TOKEN = re.compile(
    r"<\|[^|<>]*\|>|<｜[^｜<>]*｜>|<\|[a-z_\"]+>|<[a-z_]+\|>|｜DSML｜|\]<\]minimax\[>\[|\[/?[A-Z_]+\]"
    r"|</?(?:seed:|mm:|minimax:)?(?:think|tool_call|tool_calls)>|<(?:start|end)_function_call>|<escape>"
)


@pytest.fixture(params=["markers are tokens", "markers are text"])
def family_tokenizer(request: pytest.FixtureRequest) -> Callable[[ModelFamily], Tokenizer]:
    """A tokenizer for a family; its markers are tokens, or none of them is."""

    def make(family: ModelFamily) -> Tokenizer:
        texts = "\n".join((*family.markers(), *family.stop_tokens))
        found = _TOKEN.findall(texts) if request.param == "markers are tokens" else ()
        return byte_tokenizer(tuple(dict.fromkeys(("<|im_end|>", *found))))

    return make
