"""The HTTP application: routes, middleware and the one translation of exceptions to answers."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response

from interlock import __version__
from interlock.api import openapi, operations
from interlock.api.admin import page as admin_page
from interlock.api.admin import routes as admin_routes
from interlock.api.admin.service import AdminService
from interlock.api.anthropic.messages import routes as messages
from interlock.api.auth import RequireKey
from interlock.api.context import ApiContext, ReasoningField, Service
from interlock.api.cors import CrossOrigin
from interlock.api.disconnect import ClientGone
from interlock.api.edge import Edge
from interlock.api.errors import error_response, internal_error
from interlock.api.native import check, tokens
from interlock.api.ollama import routes as ollama
from interlock.api.openai import models
from interlock.api.openai.chat import routes as chat
from interlock.api.openai.completions import routes as completions
from interlock.api.openai.responses import routes as responses
from interlock.config import HttpConfig
from interlock.core.engine import EnginePhase, EngineStats
from interlock.errors import InterlockError
from interlock.metrics import Metrics


def build_app(
    service: Service,
    http: HttpConfig,
    metrics: Metrics,
    *,
    health: Callable[[], EnginePhase],
    stats: Callable[[], Awaitable[EngineStats]],
    reasoning_field: ReasoningField = "reasoning_content",
    keep_alive_s: float = 15.0,
    admin: AdminService | None = None,
) -> FastAPI:
    """The application of one server. It starts and stops nothing; see ``ApiContext`` for the arguments. admin: has
    the admin API be served, ``None`` leaves its paths unknown."""
    context = ApiContext(
        service=service,
        health=health,
        stats=stats,
        http=http,
        metrics=metrics,
        created=int(time.time()),
        reasoning_field=reasoning_field,
        keep_alive_s=keep_alive_s,
    )
    app = FastAPI(
        title="Interlock",
        version=__version__,
        openapi_url=None,  # bodies are read by hand, within bounds; ``openapi`` has the document
        redirect_slashes=False,
        middleware=[
            Middleware(Edge, max_headers=http.max_headers, max_header_bytes=http.max_header_bytes),
            *([Middleware(CrossOrigin, origins=http.allow_origins)] if http.allow_origins else ()),
            Middleware(RequireKey, keys=http.api_keys, admin_keys=http.admin_keys),
        ],
    )
    for module in (
        chat,
        check,
        completions,
        messages,
        models,
        ollama,
        openapi,
        operations,
        responses,
        tokens,
    ):
        app.include_router(module.router(context))
    if admin is not None:
        app.include_router(admin_routes.router(context, admin))
        app.include_router(admin_page.router())
    app.add_exception_handler(InterlockError, _interlock_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientGone, _client_gone)
    return app


async def _interlock_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, InterlockError)
    return error_response(error, request.url.path)


async def _http_error(request: Request, error: Exception) -> Response:
    """What the router itself refuses."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:200]
    if error.status_code == 404:
        return error_response(InterlockError("not_found", f"there is no path {path}"), path)
    if error.status_code != 405:
        return error_response(internal_error(), path)
    response = error_response(
        InterlockError("method_not_allowed", f"{path} does not answer to {request.method}"), path
    )
    response.headers["allow"] = (error.headers or {}).get("Allow", "")
    return response


async def _client_gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=499)  # for the access log; nobody reads it
