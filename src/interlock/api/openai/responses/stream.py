"""Events of a generation to OpenAI's named events, numbered, in the documented order.

``response.created``, ``response.in_progress``, then for each item ``output_item.added``, its parts and deltas and
``output_item.done``; last ``response.completed``, ``response.incomplete`` or ``response.failed``.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from interlock import log
from interlock.api.context import Generation
from interlock.api.errors import internal_error
from interlock.api.openai.responses.output import Output
from interlock.api.openai.responses.request import ResponsesCall
from interlock.api.openai.responses.response import ResponseHead, keep
from interlock.api.openai.responses.store import ResponseStore
from interlock.api.sse import encode_named
from interlock.core.events import Event, Failed, Finished
from interlock.errors import InterlockError

_LOG = log.get(__name__)


async def stream_events(
    events: AsyncIterator[Event], *, generation: Generation, call: ResponsesCall, store: ResponseStore
) -> AsyncGenerator[bytes, None]:
    """Encoded server-sent events."""
    output, head, number = Output(call.custom), ResponseHead(call, int(time.time())), 0

    def encode(payload: dict[str, Any]) -> bytes:
        nonlocal number
        number += 1
        return encode_named(payload["type"], {**payload, "sequence_number": number - 1})

    try:
        for state in ("created", "in_progress"):
            yield encode({"type": f"response.{state}", "response": head.object("in_progress", [])})
        async for payload in _payloads(events, output, head, generation):
            if payload["type"] in ("response.completed", "response.incomplete"):
                await keep(payload["response"], call, store)
            yield encode(payload)
    except InterlockError as error:
        yield encode({"type": "response.failed", "response": head.failed(output, error)})
    except Exception:  # noqa: BLE001  the process edge: a stream that began must end with a reason
        _LOG.exception("response %s could not be written", call.request.request_id)
        yield encode({"type": "response.failed", "response": head.failed(output, internal_error())})


async def _payloads(
    events: AsyncIterator[Event], output: Output, head: ResponseHead, generation: Generation
) -> AsyncIterator[dict[str, Any]]:
    async for event in events:
        match event:
            case Failed(error=error):
                raise error
            case Finished(reason=reason):
                for payload in output.end(cut=reason == "length"):
                    yield payload
                response = head.ended(output, event, generation)
                yield {"type": f"response.{response['status']}", "response": response}
            case _:
                for payload in output.take(event):
                    yield payload
