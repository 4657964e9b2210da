"""Which answers are closed: the request, else the server, and what the engine and the family allow."""

from __future__ import annotations

import pytest

from interlock.config import CloseOnLength
from interlock.core.engine import LengthClosing
from interlock.core.output_format import JsonObjectFormat, OutputFormat, TextFormat
from interlock.core.tools import Tool, ToolContext
from interlock.errors import InterlockError
from interlock.resolve.closing import resolve_closing
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
OPENER = TOKENIZER.special_tokens["<tool_call>"]
ANSWER, TEXT = JsonObjectFormat(), TextFormat()
TOOLS = ToolContext(effective_tools=(Tool(name="f"),), callable_tools=(Tool(name="f"),))
NONE = ToolContext()


def resolved(
    asked: CloseOnLength | None,
    format_: OutputFormat,
    tools: ToolContext = NONE,
    opener: str = "<tool_call>",
    *,
    default: CloseOnLength = "answers",
    is_possible: bool = True,
) -> LengthClosing | None:
    return resolve_closing(
        asked,
        default,
        tools=tools,
        output_format=format_,
        openers=(opener,),
        tokenizer=TOKENIZER,
        is_possible=is_possible,
    )


@pytest.mark.parametrize(
    ("asked", "format_", "tools", "opener", "expected"),
    [
        (None, ANSWER, NONE, "<tool_call>", LengthClosing()),
        (None, TEXT, TOOLS, "<tool_call>", None),
        (None, ANSWER, TOOLS, "<tool_call>", LengthClosing(openers=(OPENER,))),
        (None, ANSWER, TOOLS, "[CALL]", None),
        ("off", ANSWER, NONE, "<tool_call>", None),
        ("all", TEXT, TOOLS, "<tool_call>", LengthClosing(openers=(OPENER,), calls=True)),
        ("all", TEXT, TOOLS, "[CALL]", LengthClosing(calls=True)),
    ],
)
def test_what_is_closed(
    asked: CloseOnLength | None,
    format_: OutputFormat,
    tools: ToolContext,
    opener: str,
    expected: LengthClosing | None,
) -> None:
    assert resolved(asked, format_, tools, opener) == expected


def test_the_server_decides_where_a_request_says_nothing() -> None:
    assert resolved(None, ANSWER, default="off") is None
    assert resolved("answers", ANSWER, default="off") == LengthClosing()


def test_an_engine_that_cannot_close_refuses_who_asks_for_it() -> None:
    assert resolved(None, ANSWER, is_possible=False) is None
    assert resolved("off", ANSWER, is_possible=False) is None
    with pytest.raises(InterlockError) as caught:
        resolved("answers", ANSWER, is_possible=False)
    assert caught.value.code == "unsupported_parameter"
