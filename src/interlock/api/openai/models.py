"""``GET /v1/models`` and ``GET /v1/models/{id}``."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from interlock.api.context import ApiContext
from interlock.api.errors import json_response
from interlock.errors import InterlockError


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()

    def card(name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": context.created, "owned_by": "interlock"}

    @routes.get("/v1/models")
    async def models() -> Response:
        return json_response({"object": "list", "data": [card(name) for name in context.service.model_names]})

    @routes.get("/v1/models/{name:path}")
    async def model(name: str) -> Response:
        if name not in context.service.model_names:
            raise InterlockError(
                "model_not_found", f"the model {name[:200]!r} is not served here", param="model"
            )
        return json_response(card(name))

    return routes
