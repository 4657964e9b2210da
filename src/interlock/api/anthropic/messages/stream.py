"""Events of a generation to Anthropic's named events, in the documented order.

``message_start``, ``ping``, then for each block ``content_block_start``, its deltas and ``content_block_stop``,
then ``message_delta`` with reason and usage, and ``message_stop``. A failure is an ``error`` event, the last one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from interlock import log
from interlock.api.answer import report
from interlock.api.anthropic.messages.blocks import Blocks
from interlock.api.anthropic.messages.response import ending, message_object, usage_object
from interlock.api.context import Generation
from interlock.api.errors import anthropic_error_body, internal_error
from interlock.api.sse import StreamFormat, encode_named
from interlock.core.events import Event, Failed, Finished
from interlock.core.usage import Usage
from interlock.errors import InterlockError

_LOG = log.get(__name__)

PING = {"type": "ping"}
STREAM_FORMAT = StreamFormat(media_type="text/event-stream", keep_alive=encode_named("ping", PING))


async def stream_events(
    events: AsyncIterator[Event], *, generation: Generation, message_id: str, model: str
) -> AsyncGenerator[bytes, None]:
    """Encoded server-sent events."""
    try:
        usage = usage_object(Usage(prompt_tokens=generation.num_prompt_tokens))
        yield _encode({"type": "message_start", "message": message_object(message_id, model, [], usage)})
        yield _encode(PING)
        async for payload in _payloads(events, generation):
            yield _encode(payload)
    except InterlockError as error:
        yield _encode(anthropic_error_body(error))
    except Exception:  # noqa: BLE001  the process edge: a stream that began must end with a reason
        _LOG.exception("message %s could not be written", message_id)
        yield _encode(anthropic_error_body(internal_error()))


async def _payloads(events: AsyncIterator[Event], generation: Generation) -> AsyncIterator[dict[str, Any]]:
    blocks = Blocks()
    async for event in events:
        match event:
            case Failed(error=error):
                raise error
            case Finished(usage=usage):
                for payload in blocks.end():
                    yield payload
                yield {
                    "type": "message_delta",
                    "delta": ending(event),
                    "usage": usage_object(usage),
                    **report(generation, blocks.cut_call, event.validity, event.timings),
                }
                yield {"type": "message_stop"}
            case _:
                for payload in blocks.take(event):
                    yield payload


def _encode(payload: dict[str, Any]) -> bytes:
    return encode_named(payload["type"], payload)
