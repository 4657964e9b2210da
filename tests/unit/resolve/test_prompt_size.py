from __future__ import annotations

import pytest

from interlock.core.messages import Message
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.resolve.prompt_size import check_prompt_size


def user(text: str) -> Message:
    return Message(role="user", content=text)


@pytest.mark.parametrize(
    ("messages", "tools"),
    [
        ([user("x" * 1001)], []),
        ([user("x" * 600), user("x" * 600)], []),
        ([user("x")], [Tool(name="f", description="x" * 1001)]),
        ([user("x")], [Tool(name="f", parameters='{"const":"' + "x" * 1001 + '"}')]),
        ([user("")] * 101, []),
    ],
)
def test_what_cannot_fit_is_refused(messages: list[Message], tools: list[Tool]) -> None:
    with pytest.raises(InterlockError) as caught:
        check_prompt_size(messages, tools, context_tokens=100, longest_token=4)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")


def test_what_may_fit_is_left_to_the_tokenizer() -> None:
    reply = Message(role="assistant", content="x" * 10_000)  # a template may drop it
    check_prompt_size([user("x" * 800), reply], [], context_tokens=100, longest_token=4)
