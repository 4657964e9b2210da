"""``POST /v1/completions``."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from interlock.api.context import ApiContext
from interlock.api.endpoint import Endpoint
from interlock.api.openai.completions.prompt_only import prompt_only
from interlock.api.openai.completions.request import CompletionsCall, read_completions_call
from interlock.api.openai.completions.response import complete
from interlock.api.openai.completions.stream import stream_chunks
from interlock.api.openai.head import Head
from interlock.api.running import RunningRequest
from interlock.core.events import Event


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()

    async def whole(running: RunningRequest, call: CompletionsCall) -> dict[str, Any]:
        return await complete(
            _events(running, call),
            generation=running.generation,
            head=_head(call),
            call=call,
            decode=context.service.tokenizer(call.model).decode,
        )

    def streamed(running: RunningRequest, call: CompletionsCall) -> AsyncGenerator[bytes, None]:
        return stream_chunks(
            _events(running, call),
            generation=running.generation,
            head=_head(call),
            call=call,
            decode=context.service.tokenizer(call.model).decode,
        )

    endpoint = Endpoint(
        name="completions", read=_read, complete=whole, stream=streamed, locate=CompletionsCall.locate
    )

    @routes.post("/v1/completions")
    async def completions(request: Request) -> Response:
        return await endpoint.answer(request, context)

    return routes


def _events(running: RunningRequest, call: CompletionsCall) -> AsyncIterator[tuple[int, Event]]:
    return prompt_only(running.indexed()) if call.is_prompt_only else running.indexed()


def _read(body: bytes, max_nesting: int) -> CompletionsCall:
    return read_completions_call(body, request_id=f"cmpl-{uuid.uuid4().hex}", max_nesting=max_nesting)


def _head(call: CompletionsCall) -> Head:
    return Head(id=call.id, created=int(time.time()), model=call.model)
