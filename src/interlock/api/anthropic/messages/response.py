"""Events of a generation to one message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from interlock.api.answer import report
from interlock.api.anthropic.messages.blocks import Blocks
from interlock.api.context import Generation
from interlock.core.events import Event, Failed, Finished
from interlock.core.usage import Usage
from interlock.errors import InterlockError


async def complete(
    events: AsyncIterator[Event], *, generation: Generation, message_id: str, model: str
) -> dict[str, Any]:
    """The whole message. Raises the error of a ``Failed``."""
    blocks = Blocks()
    async for event in events:
        if isinstance(event, Failed):
            raise event.error
        if isinstance(event, Finished):
            for _ in blocks.end():
                pass
            return {
                **message_object(message_id, model, blocks.content(), usage_object(event.usage)),
                **ending(event),
                **report(generation, blocks.cut_call, event.validity, event.timings),
            }
        for _ in blocks.take(event):
            pass
    raise AssertionError("a generation ends with Finished or Failed")


def message_object(
    message_id: str, model: str, content: list[dict[str, Any]], usage: dict[str, Any]
) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def ending(finished: Finished) -> dict[str, Any]:
    """``stop_reason`` and ``stop_sequence``. Raises ``shutting_down`` for an answer that the server gave up. An
    answer held to a format that a stop sequence cut off ends as one that ran out of tokens: it is not whole."""
    if finished.reason == "abort":
        raise InterlockError("shutting_down", "the server ended the request")
    stopped = finished.reason == "stop" and finished.stop_string is not None
    reasons = {"tool_calls": "tool_use", "length": "max_tokens", "stop": "end_turn"}
    return {
        "stop_reason": "stop_sequence" if stopped else reasons[finished.reason],
        "stop_sequence": finished.stop_string if stopped else None,
    }


def usage_object(usage: Usage) -> dict[str, Any]:
    """``input_tokens`` are those that did not come from the cache."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }
