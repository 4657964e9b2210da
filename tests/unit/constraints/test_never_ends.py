"""A grammar whose forced text has no end is refused when it is compiled, not when its first token is taken."""

from __future__ import annotations

import llguidance
import pytest

from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer


@pytest.mark.parametrize("lark", ['start: "a" start', 'start: "(" start ")"', 'start: x\nx: "ab" x'])
def test_text_without_an_end_is_refused(lark: str) -> None:
    provider = LLGuidanceProvider(byte_tokenizer())

    with pytest.raises(InterlockError, match="never ends") as caught:
        provider.compile(llguidance.LLMatcher.grammar_from_lark(lark))

    assert caught.value.code == "invalid_grammar"


def test_a_long_forced_text_with_an_end_compiles() -> None:
    provider = LLGuidanceProvider(byte_tokenizer())

    assert provider.compile(llguidance.LLMatcher.grammar_from_lark(f'start: "{"ab" * 20_000}"')).matcher()
