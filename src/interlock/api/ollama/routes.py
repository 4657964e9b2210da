"""``/api/chat`` and ``/api/generate``, and what clients ask about models."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from interlock import __version__
from interlock.api.context import ApiContext
from interlock.api.endpoint import Endpoint, read_call
from interlock.api.errors import json_response
from interlock.api.json_body import decode_object
from interlock.api.ollama.request import OllamaCall, model_name, read_chat_call, read_generate_call
from interlock.api.ollama.response import Kind, OllamaHead, complete, stream_lines
from interlock.api.reading import validated
from interlock.api.running import RunningRequest
from interlock.api.sse import JSON_LINES
from interlock.api.wire import Wire

_DETAILS = {"format": "", "family": "", "families": [], "parameter_size": "", "quantization_level": ""}


class WireShow(Wire):
    model: str | None = None
    name: str | None = None


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()
    chat_endpoint = _endpoint("chat", read_chat_call)
    generate_endpoint = _endpoint("generate", read_generate_call)
    modified = datetime.fromtimestamp(context.created, UTC).isoformat().replace("+00:00", "Z")

    @routes.post("/api/chat")
    async def chat(request: Request) -> Response:
        return await chat_endpoint.answer(request, context)

    @routes.post("/api/generate")
    async def generate(request: Request) -> Response:
        return await generate_endpoint.answer(request, context)

    @routes.get("/api/tags")
    async def tags() -> Response:
        models = [
            {"name": name, "model": name, "modified_at": modified, "size": 0, "digest": "", "details": _DETAILS}
            for name in context.service.model_names
        ]
        return json_response({"models": models})

    @routes.post("/api/show")
    async def show(request: Request) -> Response:
        wire = await read_call(request, context, _read_show)
        context.service.tokenizer(model_name(wire.model or wire.name or ""))  # refuses an unknown model
        return json_response(
            {
                "modified_at": modified,
                "details": _DETAILS,
                "model_info": {},
                "template": "",
                "modelfile": "",
                "parameters": "",
                "capabilities": ["completion", "tools"],
            }
        )

    @routes.get("/api/version")
    async def version() -> Response:
        return json_response({"version": __version__})

    return routes


def _endpoint(kind: Kind, read: Callable[..., OllamaCall]) -> Endpoint[OllamaCall]:
    def read_body(body: bytes, max_nesting: int) -> OllamaCall:
        return read(body, request_id=f"ollama-{uuid.uuid4().hex}", max_nesting=max_nesting)

    return Endpoint(
        name=f"ollama_{kind}",
        read=read_body,
        complete=partial(_whole, kind),
        stream=partial(_streamed, kind),
        stream_format=JSON_LINES,
        locate=OllamaCall.locate,
    )


async def _whole(kind: Kind, running: RunningRequest, call: OllamaCall) -> dict[str, Any]:
    return await complete(running, generation=running.generation, head=_head(kind, call))


def _streamed(kind: Kind, running: RunningRequest, call: OllamaCall) -> AsyncGenerator[bytes, None]:
    return stream_lines(running, generation=running.generation, head=_head(kind, call))


def _head(kind: Kind, call: OllamaCall) -> OllamaHead:
    return OllamaHead(kind, call.model, loads=call.loads)


def _read_show(body: bytes, max_nesting: int) -> WireShow:
    return validated(WireShow, decode_object(body, None, max_nesting=max_nesting))
