"""The application over a scripted service, without sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi import FastAPI

from interlock.api.app import build_app
from interlock.api.scripted import ScriptedService
from interlock.config import HttpConfig
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint, Lowering
from interlock.core.engine import EngineRequest
from interlock.engine.fake import ScriptedEngine
from interlock.errors import InterlockError
from interlock.families.qwen3 import FAMILY
from interlock.families.wire.render import PromptRenderer
from interlock.metrics import Metrics
from interlock.serving.model import ServedModel
from interlock.serving.service import GenerationService
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

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

    async def events(self, **fields: Any) -> list[Any]:
        """Payloads of a stream that began."""
        response = await self.chat(stream=True, **fields)
        assert response.status_code == 200, response.text
        return payloads(response.text)

    async def folded(self, **fields: Any) -> Folded:
        return fold_chunks((await self.events(**fields))[:-1])

    async def error(self, status: int = 400, **fields: Any) -> dict[str, Any]:
        response = await self.chat(**fields)
        assert response.status_code == status, response.text
        return response.json()["error"]


MakeApi = Callable[..., Api]


def payloads(body: str) -> list[Any]:
    """The data of an SSE body, which must be well formed; ``[DONE]`` stays a string."""
    assert body.endswith("data: [DONE]\n\n")
    events = [event for event in body.split("\n\n")[:-1] if not event.startswith(":")]
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    return [data if data == "[DONE]" else json.loads(data) for data in (event[6:] for event in events)]


class Folded(NamedTuple):
    """What a client collects from a stream: message, finish reason and extension object."""

    message: dict[str, Any]
    finish_reason: str
    extension: Any


def fold_chunks(chunks: list[dict[str, Any]]) -> Folded:
    message: dict[str, Any] = {"role": None, "content": "", "refusal": None}
    calls: dict[int, dict[str, Any]] = {}
    reasons, extensions = [], []
    for chunk in chunks:
        extensions += [chunk["interlock"]] if "interlock" in chunk else []
        for choice in chunk["choices"]:
            delta = choice["delta"]
            reasons += [choice["finish_reason"]] if choice["finish_reason"] is not None else []
            message["role"] = delta.get("role", message["role"])
            message["content"] += delta.get("content", "")
            if "reasoning_content" in delta:
                message["reasoning_content"] = message.get("reasoning_content", "") + delta["reasoning_content"]
            for piece in delta.get("tool_calls", ()):
                _fold_call(calls, piece)
    if calls:
        message["tool_calls"] = list(calls.values())
        message["content"] = message["content"] or None
    (reason,) = reasons
    assert len(extensions) <= 1
    return Folded(message, reason, extensions[0] if extensions else None)


def _fold_call(calls: dict[int, dict[str, Any]], piece: dict[str, Any]) -> None:
    """The identity of a call is in its first delta, and only there."""
    if piece["index"] not in calls:
        assert set(piece) == {"index", "id", "type", "function"}
        calls[piece["index"]] = {key: value for key, value in piece.items() if key != "index"}
        return
    assert set(piece) == {"index", "function"}
    assert set(piece["function"]) == {"arguments"}
    calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]


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


@pytest.fixture
def fold() -> Callable[[str], Folded]:
    """The body of a stream to what a client collects from it."""
    return lambda body: fold_chunks(payloads(body)[:-1])


class Pool:
    """Lowers nothing; refuses what ``refusal`` says."""

    refusal: InterlockError | None = None

    def __init__(self) -> None:
        self.specs: list[ConstraintSpec] = []

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def check(
        self, value: JsonValue, instances: Sequence[str], documents: Mapping[str, str]
    ) -> dict[str, Any]:
        return {"compiled": True, "report": []}

    async def validate(self, pairs: Sequence[tuple[str, str]]) -> tuple[bool | None, ...]:
        return (True,) * len(pairs)

    async def lower(self, spec: ConstraintSpec, documents: Mapping[str, str] = NO_DOCUMENTS) -> Lowering:
        self.specs.append(spec)
        if self.refusal is not None:
            raise self.refusal
        return Lowering(constraint=LoweredConstraint(provider=spec.provider, grammar="", key=spec.digest()))


PLAIN_TEMPLATE = "{%- for message in messages %}{{ message.content }}<|im_end|>{% endfor -%}"


class Stack:
    """A served model whose text a test sets. limits: of ``HttpConfig``."""

    def __init__(self, *, template: str = PLAIN_TEMPLATE, **limits: Any) -> None:
        self.text = "hello"
        self.tokenizer = byte_tokenizer()
        self.engine = ScriptedEngine(self._play, context_tokens=2000)
        self.pool = Pool()
        self.description = ModelDescription(
            tokenizer=self.tokenizer,
            architecture="test",
            name="test",
            chat_template=template,
            context_tokens=0,
            bos_token="",
            eos_token="<|im_end|>",
        )
        self.model = ServedModel(
            name="m",
            family=FAMILY,
            tokenizer=self.tokenizer,
            renderer=PromptRenderer(FAMILY, self.description),
            engine=self.engine,
            compile_pool=self.pool,
        )
        metrics, http = Metrics(), HttpConfig(drain_s=0.0, **limits)
        self.service = GenerationService(self.model, metrics, http)
        self.app = build_app(
            self.service, http, metrics, health=lambda: self.service.lifecycle.phase, stats=self.engine.stats
        )

    def _play(self, _request: EngineRequest) -> list[int]:
        return [*self.tokenizer.encode(self.text), self.tokenizer.vocabulary.stop_ids[0]]


@pytest.fixture
def new_stack() -> type[Stack]:
    return Stack


@pytest.fixture
async def stack() -> AsyncIterator[Stack]:
    made = Stack()
    await made.service.lifecycle.start()
    yield made
    await made.service.lifecycle.stop()
