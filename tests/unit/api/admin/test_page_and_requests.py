"""What the page is made of, who may have it, and the requests that it shows."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from interlock.api.app import build_app
from interlock.api.scripted import ScriptedService
from interlock.config import HttpConfig
from interlock.metrics import Metrics
from interlock.serving.registry import ModelRegistry


@pytest.fixture
async def client() -> Any:
    service = ScriptedService()
    app = build_app(
        service,
        HttpConfig(api_keys=("key",), admin_keys=("admin",)),
        Metrics(),
        health=lambda: service.phase,
        stats=service.stats,
        admin=ModelRegistry([]),
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as opened:
        yield opened


async def test_the_page_needs_no_key_and_what_it_shows_does(client: httpx.AsyncClient) -> None:
    page = await client.get("/admin")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    files = re.findall(r'(?:src|href)="(/admin/[^"]+)"', page.text)
    assert {file.rpartition(".")[2] for file in files} == {"css", "js"}
    for file in files:
        assert (await client.get(file)).status_code == 200
    for path in ("/admin/api/models", "/admin/api/requests"):
        assert (await client.get(path)).status_code == 401
        assert (await client.get(path, headers={"x-api-key": "key"})).status_code == 401
        assert (await client.get(path, headers={"x-api-key": "admin"})).status_code == 200


async def test_the_page_may_load_nothing_from_elsewhere(client: httpx.AsyncClient) -> None:
    page = await client.get("/admin")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "//" not in re.sub(r"<!.*?>", "", page.text)


@pytest.mark.parametrize("name", ["nothing.js", "..%2fpage.py", "%2e%2e"])
async def test_no_other_file_is_served(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/admin/static/{name}")).status_code == 404


async def test_a_request_that_does_not_run_cannot_be_cancelled(client: httpx.AsyncClient) -> None:
    answer = await client.post("/admin/api/requests/nobody/cancel", headers={"x-api-key": "admin"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


async def test_with_the_requests_come_the_counters_of_the_engine(client: httpx.AsyncClient) -> None:
    answer = await client.get("/admin/api/requests", headers={"x-api-key": "admin"})
    engine = answer.json()["engine"]
    assert (engine["num_slots"], engine["num_running"], engine["prompt_cache_bytes"]) == (8, 0, 0)
    assert {
        "num_states_saved",
        "num_states_restored",
        "num_states_evicted",
        "num_restored_tokens",
    } <= engine.keys()
