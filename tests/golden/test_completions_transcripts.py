"""What goes over the wire for completions, byte for byte, ids and times made equal."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.scripted import USAGE, text
from interlock.core.events import Failed, Finished, ScoredToken, TextDelta, TokenLogprobs
from interlock.errors import InterlockError

SCORED = TokenLogprobs(tokens=(ScoredToken(token_id=104, data=b"h", logprob=-0.5, top=((104, b"h", -0.5),)),))
ANSWER = [SCORED, TextDelta(text="h"), Finished(reason="length", usage=USAGE)]

CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({}, text("Hello", " there.")),
    "text_stream": ({"stream": True, "stream_options": {"include_usage": True}}, text("Hello", " there.")),
    "echo": ({"echo": True, "prompt": [72, 105]}, text("!")),
    "echo_stream": ({"echo": True, "stream": True}, text("!")),
    "logprobs": ({"logprobs": 1}, ANSWER),
    "logprobs_stream": ({"logprobs": 1, "stream": True}, ANSWER),
    "two_prompts": ({"prompt": ["a", "b"]}, text("x")),
    "failure_stream": (
        {"stream": True},
        [TextDelta(text="a"), Failed(error=InterlockError("worker_died", "the model worker stopped"))],
    ),
    "suffix": ({"suffix": "end"}, text()),
}


@pytest.mark.parametrize("name", CASES)
async def test_transcript(name: str, record) -> None:
    fields, answer = CASES[name]
    await record(
        f"completions/{name}", "/v1/completions", {"model": "scripted", "prompt": "Hi", **fields}, answer
    )
