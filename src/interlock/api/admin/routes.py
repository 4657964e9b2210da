"""``/admin/api``: models, their settings, the requests that run, and the families.

``PUT`` of settings takes an object of changes: a key that is absent stays as it is, ``null`` clears one. Every key is
checked before anything changes, and new requests see the change at once.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from interlock.api.admin.service import AdminModel, AdminService
from interlock.api.context import ApiContext
from interlock.api.endpoint import read_call
from interlock.api.errors import json_response
from interlock.api.json_body import decode_object
from interlock.families.registry import FAMILIES


def router(context: ApiContext, admin: AdminService) -> APIRouter:
    routes = APIRouter(prefix="/admin/api")

    @routes.get("/models")
    async def models() -> Response:
        return json_response({"models": [_model(model) for model in admin.models]})

    @routes.get("/models/{name:path}/settings")
    async def settings(name: str) -> Response:
        return json_response(admin.find(name).settings.to_json())

    @routes.put("/models/{name:path}/settings")
    async def change(name: str, request: Request) -> Response:
        changes = await read_call(request, context, _read_changes)
        return json_response((await admin.configure(name, changes)).to_json())

    @routes.get("/requests")
    async def requests() -> Response:
        """``engine``: the counters of ``EngineStats``, all models together; null while a worker does not answer."""
        stats = await context.known_stats()
        engine = None if stats is None else asdict(stats)
        return json_response({"requests": [asdict(one) for one in admin.live()], "engine": engine})

    @routes.post("/requests/{request_id}/cancel")
    async def cancel(request_id: str) -> Response:
        await admin.cancel(request_id)
        return json_response({"cancelled": request_id})

    @routes.get("/grammar/parsers")
    async def parsers() -> Response:
        return json_response({"reasoning_parsers": _parsers(admin), "families": _families(admin)})

    return routes


def _read_changes(body: bytes, max_nesting: int) -> dict[str, Any]:
    return decode_object(body, {}, max_nesting=max_nesting)


def _model(model: AdminModel) -> dict[str, Any]:
    return {
        "id": model.name,
        "phase": model.phase,
        "family": model.family.name,
        "problems": list(model.problems),
        "reasoning": model.family.reasoning is not None,
        "settings": model.settings.to_json(),
    }


def _parsers(admin: AdminService) -> list[dict[str, Any]]:
    """The values that ``reasoning_parser`` takes, with the served models that read thinking so now."""
    none = {
        "value": "",
        "label": "none: a constraint holds from the first token",
        "models": [model.name for model in admin.models if model.family.reasoning is None],
    }
    return [none] + [
        {
            "value": family.name,
            "label": f"{family.title or family.name}: {family.reasoning.open} {family.reasoning.close}",
            "models": [model.name for model in admin.models if model.family.reasoning == family.reasoning],
        }
        for family in FAMILIES
        if family.reasoning is not None
    ]


def _families(admin: AdminService) -> list[dict[str, Any]]:
    """The values that ``family`` takes."""
    return [
        {
            "value": family.name,
            "label": family.title or family.name,
            "models": [model.name for model in admin.models if model.family.name == family.name],
        }
        for family in FAMILIES
    ]
