"""What an operator asks: ``/health``, ``/ready``, ``/metrics``, ``/version``."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from interlock import __version__
from interlock.api.context import ApiContext
from interlock.api.errors import json_response
from interlock.core.engine import EnginePhase

_SERVING: frozenset[EnginePhase] = frozenset({"ready", "unloaded"})
_TAKING = _SERVING | {"restarting"}


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()

    @routes.api_route("/health", methods=["GET", "HEAD"])
    async def health() -> Response:
        """200 when requests are served, else 503; ``phase`` says what the engine is doing."""
        phase = context.health()
        ready = phase in _SERVING
        body = {"status": "ok" if ready else "unavailable", "phase": phase}
        return json_response(body, status=200 if ready else 503)

    @routes.api_route("/ready", methods=["GET", "HEAD"])
    async def ready() -> Response:
        """200 when a request that comes now is taken, also where it waits for a worker that is restarted."""
        phase = context.health()
        is_ready = phase in _TAKING
        return json_response({"ready": is_ready, "phase": phase}, status=200 if is_ready else 503)

    @routes.get("/metrics")
    async def metrics() -> Response:
        """Prometheus text. The engine's part is left out while its worker does not answer."""
        stats = await context.known_stats()
        context.metrics.engine.values = None if stats is None else asdict(stats)
        return Response(generate_latest(context.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @routes.get("/version")
    async def version() -> Response:
        return json_response({"version": __version__})

    return routes
