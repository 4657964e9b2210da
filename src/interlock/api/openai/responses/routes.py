"""``POST /v1/responses``; ``GET`` and ``DELETE /v1/responses/{id}`` for those that are stored."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from interlock.api.context import ApiContext
from interlock.api.endpoint import Endpoint
from interlock.api.errors import json_response
from interlock.api.openai.responses.request import ResponsesCall, read_responses_call
from interlock.api.openai.responses.response import complete
from interlock.api.openai.responses.store import ResponseStore, StoredResponse
from interlock.api.openai.responses.stream import stream_events
from interlock.api.running import RunningRequest
from interlock.errors import InterlockError


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()
    store = ResponseStore(context.http.responses)

    def read(body: bytes, max_nesting: int) -> ResponsesCall:
        request_id = f"resp_{uuid.uuid4().hex}"
        return read_responses_call(body, store, request_id=request_id, max_nesting=max_nesting)

    async def whole(running: RunningRequest, call: ResponsesCall) -> dict[str, Any]:
        return await complete(running, generation=running.generation, call=call, store=store)

    def streamed(running: RunningRequest, call: ResponsesCall) -> AsyncGenerator[bytes, None]:
        return stream_events(running, generation=running.generation, call=call, store=store)

    endpoint = Endpoint(
        name="responses", read=read, complete=whole, stream=streamed, locate=ResponsesCall.locate
    )

    @routes.post("/v1/responses")
    async def responses(request: Request) -> Response:
        return await endpoint.answer(request, context)

    @routes.get("/v1/responses/{response_id}")
    async def stored(response_id: str) -> Response:
        return Response((await _load(store, response_id)).body, media_type="application/json")

    @routes.get("/v1/responses/{response_id}/input_items")
    async def input_items(response_id: str) -> Response:
        items = msgspec.Raw((await _load(store, response_id)).input)
        return json_response({"object": "list", "data": items, "has_more": False})

    @routes.delete("/v1/responses/{response_id}")
    async def delete(response_id: str) -> Response:
        if not await asyncio.to_thread(store.delete, response_id):
            raise _not_stored(response_id)
        return json_response({"id": response_id, "object": "response", "deleted": True})

    return routes


async def _load(store: ResponseStore, response_id: str) -> StoredResponse:
    response = await asyncio.to_thread(store.load, response_id)
    if response is None:
        raise _not_stored(response_id)
    return response


def _not_stored(response_id: str) -> InterlockError:
    return InterlockError("not_found", f"the response `{response_id[:100]}` is not stored here")
