"""The endpoint: read, start, answer."""

from __future__ import annotations

import asyncio
import time
import uuid
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from interlock.api.context import ApiContext
from interlock.api.disconnect import while_connected
from interlock.api.errors import json_response
from interlock.api.limits import LARGE_BODY_BYTES, read_body
from interlock.api.openai.chat.request import ChatCall, read_chat_call
from interlock.api.openai.chat.response import Head, complete
from interlock.api.openai.chat.stream import stream_chunks
from interlock.api.running import RunningRequest
from interlock.api.sse import EventStream

ENDPOINT = "chat_completions"


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()

    @routes.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        async with RunningRequest(context, ENDPOINT) as running:
            call = await _read(request, context)
            answer = _stream if call.stream else _complete
            return await answer(request, context, running, call)

    return routes


async def _read(request: Request, context: ApiContext) -> ChatCall:
    body = await read_body(request, context.http)
    request_id = f"chatcmpl-{uuid.uuid4().hex}"
    read = partial(read_chat_call, body, request_id=request_id, max_nesting=context.http.max_nesting)
    return read() if len(body) < LARGE_BODY_BYTES else await asyncio.to_thread(read)


async def _complete(request: Request, context: ApiContext, running: RunningRequest, call: ChatCall) -> Response:
    async def work() -> dict[str, Any]:
        await running.start(call.request)
        return await complete(running, generation=running.generation, head=_head(context, call))

    return json_response(await while_connected(request.receive, work()), headers=_headers(call))


async def _stream(request: Request, context: ApiContext, running: RunningRequest, call: ChatCall) -> Response:
    await while_connected(request.receive, running.start_stream(call.request))
    chunks = stream_chunks(
        running,
        include_usage=call.include_usage,
        generation=running.generation,
        head=_head(context, call),
    )
    return EventStream(
        chunks, close=running.detach(), keep_alive_s=context.keep_alive_s, headers=_headers(call)
    )


def _head(context: ApiContext, call: ChatCall) -> Head:
    request = call.request
    return Head(
        id=request.request_id,
        created=int(time.time()),
        model=request.model,
        reasoning_field=context.reasoning_field,
    )


def _headers(call: ChatCall) -> dict[str, str]:
    return {"x-interlock-ignored": call.ignored} if call.ignored else {}
