"""Events of a generation to one response object."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec

from interlock.api.answer import report
from interlock.api.context import Generation
from interlock.api.openai.responses.output import Output
from interlock.api.openai.responses.request import ResponsesCall
from interlock.api.openai.responses.store import ResponseStore, StoredResponse
from interlock.core.events import Event, Failed, Finished
from interlock.core.usage import Usage
from interlock.errors import InterlockError


async def complete(
    events: AsyncIterator[Event], *, generation: Generation, call: ResponsesCall, store: ResponseStore
) -> dict[str, Any]:
    """The whole object, kept where that was asked. Raises the error of a ``Failed``."""
    output = Output(call.custom)
    head = ResponseHead(call, int(time.time()))
    async for event in events:
        if isinstance(event, Failed):
            raise event.error
        if isinstance(event, Finished):
            for _ in output.end(cut=event.reason == "length"):
                pass
            response = head.ended(output, event, generation)
            await keep(response, call, store)
            return response
        for _ in output.take(event):
            pass
    raise AssertionError("a generation ends with Finished or Failed")


async def keep(response: dict[str, Any], call: ResponsesCall, store: ResponseStore) -> None:
    """Keep the response where the request wants it."""
    if call.store:
        stored = StoredResponse(
            id=response["id"],
            previous=response["previous_response_id"],
            input=call.input_items,
            output=msgspec.json.encode(response["output"]),
            body=msgspec.json.encode(response),
        )
        await asyncio.to_thread(store.save, stored)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The object of one response in its several states. created: Unix seconds."""

    call: ResponsesCall
    created: int

    def object(self, status: str, output: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        return {
            "id": self.call.request.request_id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            **self.call.echo,
            "output": output,
            "service_tier": "default",
            "usage": None,
            "user": None,
            **fields,
        }

    def ended(self, output: Output, finished: Finished, generation: Generation) -> dict[str, Any]:
        """Raises ``shutting_down`` for an answer that the server gave up."""
        if finished.reason == "abort":
            raise InterlockError("shutting_down", "the server ended the request")
        fields: dict[str, Any] = {"completed_at": int(time.time())}
        if finished.reason == "length":
            fields = {"incomplete_details": {"reason": "max_output_tokens"}}
        status = "incomplete" if finished.reason == "length" else "completed"
        usage = usage_object(finished.usage)
        return self.object(
            status,
            output.items,
            usage=usage,
            **fields,
            **report(generation, [], finished.validity, finished.timings),
        )

    def failed(self, output: Output, error: InterlockError) -> dict[str, Any]:
        code = "rate_limit_exceeded" if error.entry.status == 429 else "server_error"
        details = {"code": code, "message": error.message, "type": error.code}
        return self.object("failed", output.items, error=details)


def usage_object(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
