"""The admin API over two models whose engines are scripted: what is set holds from the next request on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.api.app import build_app
from interlock.config import HttpConfig
from interlock.errors import InterlockError
from interlock.families.wire.render import PromptRenderer
from interlock.metrics import Metrics
from interlock.serving.configured import ConfiguredModel
from interlock.serving.registry import ModelRegistry
from interlock.settings.keys import hash_of
from interlock.settings.store import SettingsStore

NO_DRAIN = HttpConfig(drain_s=0.0)
THINKS = "{% for message in messages %}{{ message.content }}{% endfor %}<think>\n"
SETTINGS = "/admin/api/models/{}/settings"


class Server:
    """Models ``a`` and ``b``."""

    def __init__(self, new_stack: Any, path: Path, http: HttpConfig) -> None:
        self.stacks = {name: new_stack() for name in ("a", "b")}
        store = SettingsStore(path)
        self.models = ModelRegistry([self._model(name, store) for name in self.stacks])
        app = build_app(
            self.models,
            http,
            Metrics(),
            health=lambda: self.models.phase,
            stats=self.models.stats,
            admin=self.models,
        )
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")

    def _model(self, name: str, store: SettingsStore) -> ConfiguredModel:
        stack = self.stacks[name]
        description = replace(stack.description, chat_template=THINKS)
        base = replace(stack.model, name=name, renderer=PromptRenderer(stack.model.family, description))
        return ConfiguredModel(stack.service, base, description, store)

    async def put(self, changes: Any, model: str = "a") -> httpx.Response:
        return await self.client.put(SETTINGS.format(model), json=changes)

    async def chat(self, model: str, **fields: Any) -> httpx.Response:
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields}
        return await self.client.post("/v1/chat/completions", json=body)

    def last(self, model: str = "a") -> Any:
        return self.stacks[model].engine.requests[-1]


@pytest.fixture
async def make_server(new_stack: Any, tmp_path: Path) -> AsyncIterator[Any]:
    servers: list[Server] = []

    async def make(http: HttpConfig = NO_DRAIN) -> Server:
        server = Server(new_stack, tmp_path / "settings.json", http)
        servers.append(server)
        await server.models.load()
        return server

    yield make
    for server in servers:
        await server.client.aclose()
        await server.models.stop()


async def test_a_setting_holds_for_the_next_request_of_its_model_and_after_a_restart(make_server) -> None:
    server = await make_server()
    assert (await server.put({"temperature": 0.25, "max_tokens": 7})).status_code == 200
    for name, expected in (("a", (0.25, 7)), ("b", (1.0, None))):
        assert (await server.chat(name)).status_code == 200
        request = server.last(name)
        assert request.sampling.temperature == expected[0]
        assert (request.max_tokens == 7) == (expected[1] == 7)
    await server.chat("a", temperature=0.5, max_tokens=3)
    assert (server.last().sampling.temperature, server.last().max_tokens) == (0.5, 3)

    again = await make_server()
    assert (await again.client.get(SETTINGS.format("a"))).json()["temperature"] == 0.25
    await again.chat("a")
    assert again.last().max_tokens == 7


async def test_a_default_grammar_holds_answers_without_a_format_only(make_server) -> None:
    server = await make_server()
    await server.put({"grammar": 'start: "yes"'})
    await server.chat("a")
    assert server.last().constraint is not None
    assert 'start: "yes"' in server.stacks["a"].pool.specs[-1].to_json().replace('\\"', '"')
    await server.chat("a", structured_outputs={"choice": ["x"]})
    assert "yes" not in server.stacks["a"].pool.specs[-1].to_json()
    await server.put({"grammar": None})
    await server.chat("a")
    assert server.last().constraint is None


async def test_who_asks_for_text_gets_text_whatever_the_default_grammar_is(make_server) -> None:
    server = await make_server()
    await server.put({"grammar": 'start: "yes"'})
    await server.chat("a", response_format={"type": "text"})
    assert server.last().constraint is None
    body = {"model": "a", "input": "hi", "text": {"format": {"type": "text"}}}
    assert (await server.client.post("/v1/responses", json=body)).status_code == 200
    assert server.last().constraint is None
    del body["text"]
    await server.client.post("/v1/responses", json=body)
    assert server.last().constraint is not None


async def test_a_family_is_tried_out_on_the_model_when_it_is_set(make_server, caplog) -> None:
    server = await make_server()
    (before, _) = (await server.client.get("/admin/api/models")).json()["models"]
    caplog.clear()
    await server.put({"family": "minimax_m3"})
    (after, other) = (await server.client.get("/admin/api/models")).json()["models"]
    assert set(after["problems"]) - set(before["problems"])
    assert other["problems"] == before["problems"]
    assert after["problems"][0] in caplog.text


async def test_a_grammar_that_does_not_compile_is_not_kept(make_server) -> None:
    server = await make_server()
    server.stacks["a"].pool.refusal = InterlockError("invalid_grammar", "no", param="grammar")
    response = await server.put({"grammar": "start: (", "top_k": 3})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "grammar")
    assert (await server.client.get(SETTINGS.format("a"))).json()["top_k"] is None


async def test_without_a_reasoning_parser_a_constraint_holds_from_the_first_token(make_server) -> None:
    server = await make_server()
    constrained = {"structured_outputs": {"choice": ["x"]}}
    await server.chat("a", **constrained)
    thinking = server.stacks["a"].pool.specs[-1].to_json()
    await server.put({"reasoning_parser": ""})
    await server.chat("a", **constrained)
    bare = server.stacks["a"].pool.specs[-1].to_json()
    assert "think>" in thinking
    assert "think>" not in bare


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"temperature": 9}, "temperature"),
        ({"family": "zzz"}, "family"),
        ({"reasoning_parser": "zzz"}, "reasoning_parser"),
        ({"aliases": ["b"]}, "aliases"),
        ({"aliases": ["a"]}, "aliases"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
async def test_what_cannot_be_set_is_refused_with_its_key(make_server, changes, key: str) -> None:
    response = await (await make_server()).put(changes)
    assert (response.status_code, response.json()["error"]["param"]) == (400, key)


async def test_an_alias_is_a_name_of_the_model(make_server) -> None:
    server = await make_server()
    assert (await server.chat("gpt")).status_code == 404
    await server.put({"aliases": ["gpt"]}, "b")
    assert (await server.chat("gpt")).status_code == 200
    assert len(server.stacks["b"].engine.requests) == 1
    ids = [card["id"] for card in (await server.client.get("/v1/models")).json()["data"]]
    assert ids == ["a", "b", "gpt"]
    message = (await server.chat("nope")).json()["error"]["message"]
    assert "a, b, gpt" in message


async def test_models_and_parsers_are_listed(make_server) -> None:
    server = await make_server()
    models = (await server.client.get("/admin/api/models")).json()["models"]
    assert [(model["id"], model["phase"], model["family"]) for model in models] == [
        ("a", "ready", "qwen3"),
        ("b", "ready", "qwen3"),
    ]
    await server.put({"reasoning_parser": ""})
    listed = (await server.client.get("/admin/api/grammar/parsers")).json()
    by_value = {entry["value"]: entry["models"] for entry in listed["reasoning_parsers"]}
    assert (by_value[""], by_value["qwen3"]) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("/admin/api/models", None, 401),
        ("/admin/api/models", "api", 401),
        ("/admin/api/models", "admin", 200),
        ("/admin/api/models", hash_of("admin"), 401),
        ("/v1/models", "api", 200),
        ("/v1/models", "admin", 200),
        ("/v1/models", hash_of("api"), 401),
    ],
)
async def test_the_admin_key_is_its_own_and_a_hash_is_no_key(
    make_server, path: str, key: str | None, status: int
) -> None:
    server = await make_server(HttpConfig(drain_s=0.0, api_keys=(hash_of("api"),), admin_keys=("admin",)))
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    assert (await server.client.get(path, headers=headers)).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost"}, 200),
        ({"host": "127.0.0.1:8000"}, 200),
        ({"origin": "http://evil.example"}, 401),
        ({"origin": "null"}, 401),
        ({"host": "evil.example"}, 401),
    ],
)
async def test_without_an_admin_key_no_other_site_gets_in(make_server, headers, status: int) -> None:
    server = await make_server()
    assert (await server.client.get("/admin/api/models", headers=headers)).status_code == status


async def test_without_an_admin_service_there_is_no_admin_api(api) -> None:
    response = await api.client.get("/admin/api/models", headers={"host": "localhost"})
    assert response.status_code == 404
