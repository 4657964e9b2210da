"""``POST /v1/messages`` and ``POST /v1/messages/count_tokens``."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from interlock.api.anthropic.messages.request import MessagesCall, read_count_call, read_messages_call
from interlock.api.anthropic.messages.response import complete
from interlock.api.anthropic.messages.stream import STREAM_FORMAT, stream_events
from interlock.api.context import ApiContext
from interlock.api.endpoint import Endpoint, ignored_headers, read_call
from interlock.api.errors import json_response
from interlock.api.running import RunningRequest
from interlock.errors import InterlockError


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()
    endpoint = Endpoint(
        name="messages",
        read=_read,
        complete=_whole,
        stream=_streamed,
        stream_format=STREAM_FORMAT,
        locate=MessagesCall.locate,
    )

    @routes.post("/v1/messages")
    async def messages(request: Request) -> Response:
        return await endpoint.answer(request, context)

    @routes.post("/v1/messages/count_tokens")
    async def count_tokens(request: Request) -> Response:
        call = await read_call(request, context, _read_count)
        try:
            resolved = await context.service.resolve(call.request)
        except InterlockError as error:
            raise call.locate(error) from None
        return json_response(
            {"input_tokens": len(resolved.engine_request.prompt_ids)}, headers=ignored_headers(call.ignored)
        )

    return routes


def _read(body: bytes, max_nesting: int) -> MessagesCall:
    return read_messages_call(body, request_id=f"msg_{uuid.uuid4().hex}", max_nesting=max_nesting)


def _read_count(body: bytes, max_nesting: int) -> MessagesCall:
    return read_count_call(body, request_id="count_tokens", max_nesting=max_nesting)


async def _whole(running: RunningRequest, call: MessagesCall) -> dict[str, Any]:
    return await complete(
        running, generation=running.generation, message_id=call.request.request_id, model=call.request.model
    )


def _streamed(running: RunningRequest, call: MessagesCall) -> AsyncGenerator[bytes, None]:
    return stream_events(
        running, generation=running.generation, message_id=call.request.request_id, model=call.request.model
    )
