from __future__ import annotations

import pytest

from interlock import __version__
from interlock.api.scripted import ScriptedService
from interlock.errors import InterlockError


@pytest.mark.parametrize(
    "phase", ["starting", "loading_model", "warming_up", "restarting", "stopping", "failed"]
)
async def test_health_is_503_with_the_phase_until_ready(make_api, phase: str) -> None:
    service = ScriptedService()
    api = make_api(service)
    service.phase = phase
    response = await api.client.get("/health")
    assert (response.status_code, response.json()) == (503, {"status": "unavailable", "phase": phase})
    service.phase = "ready"
    response = await api.client.get("/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok", "phase": "ready"})


@pytest.mark.parametrize(
    ("phase", "status"), [("loading_model", 503), ("ready", 200), ("restarting", 200), ("stopping", 503)]
)
async def test_ready_says_whether_requests_are_taken(make_api, phase: str, status: int) -> None:
    service = ScriptedService()
    api = make_api(service)
    service.phase = phase
    response = await api.client.get("/ready")
    assert (response.status_code, response.json()["ready"]) == (status, status == 200)


async def test_a_probe_may_ask_for_the_head_only(api) -> None:
    assert (await api.client.head("/health")).status_code == 200
    assert (await api.client.head("/ready")).status_code == 200


async def test_metrics_show_requests_and_the_engine(api) -> None:
    await api.chat()
    response = await api.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert 'interlock_requests_total{endpoint="chat_completions",outcome="ok"} 1.0' in response.text
    assert "interlock_engine_slots 8.0" in response.text
    assert "_created" not in response.text


async def test_metrics_work_while_the_worker_is_gone(make_api) -> None:
    service = ScriptedService()
    api = make_api(service)
    await api.client.get("/metrics")

    async def gone() -> None:
        raise InterlockError("not_ready", "restarting")

    service.stats = gone
    response = await make_api(service).client.get("/metrics")
    assert response.status_code == 200
    assert "interlock_engine_" not in response.text


async def test_version(api) -> None:
    assert (await api.client.get("/version")).json() == {"version": __version__}


async def test_models(make_api) -> None:
    api = make_api(ScriptedService(model_names=("org/name.gguf", "other")))
    body = (await api.client.get("/v1/models")).json()
    assert body["object"] == "list"
    assert [(card["id"], card["object"]) for card in body["data"]] == [
        ("org/name.gguf", "model"),
        ("other", "model"),
    ]
    assert (await api.client.get("/v1/models/org/name.gguf")).json() == body["data"][0]
    response = await api.client.get("/v1/models/nope")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"


async def test_an_unknown_model_is_404_and_a_missing_one_400(api) -> None:
    error = await api.error(404, model="nope")
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    response = await api.client.post(api.path, json={"messages": []})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "model"
