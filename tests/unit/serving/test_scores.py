"""Log probabilities come with the text of their tokens: outside thinking and calls, and never of text cut off."""

from __future__ import annotations

import pytest

from interlock.core.engine import EngineOutput, TokenLogprob
from interlock.core.events import Finished, TextDelta, TokenLogprobs
from interlock.families.qwen3 import FAMILY
from interlock.families.wire.parse import StreamParser
from interlock.serving.output import OutputProcessor, OutputRules
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


def events(text: str, *, block: int = 1, thinking: str = "none", **rules):
    special = {token_id: spelling for spelling, token_id in TOKENIZER.special_tokens.items()}
    parser = StreamParser(FAMILY, special_tokens=special, thinking=thinking, tools="parse")  # type: ignore[arg-type]
    processor = OutputProcessor(OutputRules(**rules), TOKENIZER.vocabulary, parser)
    out = []
    ids = TOKENIZER.encode(text)
    for start in range(0, len(ids), block):
        if not processor.finished:
            some = tuple(ids[start : start + block])
            scores = tuple(TokenLogprob(token_id=i, logprob=-i, top=((i, -i),)) for i in some)
            out += processor.push(EngineOutput(request_id="r", token_ids=some, logprobs=scores))
    if not processor.finished:
        out += processor.push(EngineOutput(request_id="r", finish_reason="stop"))
    return out


def scored(found) -> str:
    tokens = [token for event in found if isinstance(event, TokenLogprobs) for token in event.tokens]
    assert all(token.logprob == -token.token_id and token.top[0][1] == token.data for token in tokens)
    return b"".join(token.data for token in tokens).decode()


@pytest.mark.parametrize("block", [1, 3, 100])
def test_the_scored_tokens_make_up_the_answer(block):
    assert scored(events("héllo", block=block)) == "héllo"


def test_scores_come_before_their_text():
    kinds = [type(event) for event in events("ab")]
    assert kinds == [TokenLogprobs, TextDelta, TokenLogprobs, TextDelta, Finished]


def test_calls_and_thinking_have_none():
    assert scored(events("hm</think>\n\nHi" + CALL, thinking="open")).strip() == "Hi"


@pytest.mark.parametrize("block", [1, 2, 100])
def test_what_a_stop_string_took_back_has_none(block):
    found = events("one STOP two", stop=(" STOP",), block=block)
    assert scored(found) == "one"
    assert found[-1].stop_string == " STOP"


def test_without_being_asked_there_are_none():
    assert not any(isinstance(event, TokenLogprobs) for event in events(""))
