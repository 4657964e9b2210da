"""The application over a scripted service, without sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from interlock.api.app import build_app
from interlock.api.scripted import ScriptedService
from interlock.config import HttpConfig
from interlock.metrics import Metrics

CHAT = "/v1/chat/completions"


@dataclass
class Api:
    """One server. ``chat`` posts a body with a model and a message filled in."""

    service: ScriptedService
    app: FastAPI
    client: httpx.AsyncClient
    metrics: Metrics
    path: str = CHAT
    defaults: dict[str, Any] = field(
        default_factory=lambda: {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}]}
    )

    async def chat(self, **fields: Any) -> httpx.Response:
        return await self.client.post(CHAT, json={**self.defaults, **fields})

    async def error(self, status: int = 400, **fields: Any) -> dict[str, Any]:
        response = await self.chat(**fields)
        assert response.status_code == status, response.text
        return response.json()["error"]


MakeApi = Callable[..., Api]


@pytest.fixture
async def make_api() -> AsyncIterator[MakeApi]:
    clients: list[httpx.AsyncClient] = []

    def make(service: ScriptedService | None = None, http: HttpConfig | None = None, **options: Any) -> Api:
        service = service or ScriptedService()
        metrics = Metrics()
        app = build_app(
            service,
            http or HttpConfig(),
            metrics,
            health=lambda: service.phase,
            stats=service.stats,
            **options,
        )
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
        clients.append(client)
        return Api(service, app, client, metrics)

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api()
