"""``POST /v1/chat/completions``, and ``/render``, which shows what would be run."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from interlock.api.context import ApiContext
from interlock.api.endpoint import Endpoint, ignored_headers, read_call
from interlock.api.errors import json_response
from interlock.api.openai.chat.rendered import rendered
from interlock.api.openai.chat.request import ChatCall, read_chat_call
from interlock.api.openai.chat.response import complete
from interlock.api.openai.chat.stream import stream_chunks
from interlock.api.openai.head import Head
from interlock.api.running import RunningRequest


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()

    async def whole(running: RunningRequest, call: ChatCall) -> dict[str, Any]:
        return await complete(
            running.indexed(),
            generation=running.generation,
            head=_head(call),
            n=call.n,
            logprobs=call.request.sampling.logprobs is not None,
            reasoning_field=context.reasoning_field,
        )

    def streamed(running: RunningRequest, call: ChatCall) -> AsyncGenerator[bytes, None]:
        return stream_chunks(
            running.indexed(),
            include_usage=call.include_usage,
            generation=running.generation,
            head=_head(call),
            n=call.n,
            reasoning_field=context.reasoning_field,
        )

    endpoint = Endpoint(
        name="chat_completions", read=_read, complete=whole, stream=streamed, locate=ChatCall.locate
    )

    @routes.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        return await endpoint.answer(request, context)

    @routes.post("/v1/chat/completions/render")
    async def render(request: Request) -> Response:
        call = await read_call(request, context, _read)
        resolved = await context.service.resolve(call.request)
        decode = context.service.tokenizer(call.request.model).decode
        return json_response(rendered(resolved, decode), headers=ignored_headers(call.ignored))

    return routes


def _read(body: bytes, max_nesting: int) -> ChatCall:
    return read_chat_call(body, request_id=f"chatcmpl-{uuid.uuid4().hex}", max_nesting=max_nesting)


def _head(call: ChatCall) -> Head:
    return Head(id=call.request.request_id, created=int(time.time()), model=call.request.model)
