"""A Hugging Face folder behind the whole server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("torch", reason="needs the extra torch")

from interlock.config import EngineConfig, HttpConfig, ServerConfig, TorchConfig
from interlock.launch import BackgroundServer

pytestmark = pytest.mark.model

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
}


@pytest.fixture(scope="module")
def url(demo_folder: Path) -> Iterator[str]:
    server = BackgroundServer(
        ServerConfig(
            served_name="demo",
            engine=EngineConfig(
                model=demo_folder, slots=3, context_tokens=512, torch=TorchConfig(device="cpu", threads=1)
            ),
            http=HttpConfig(port=0, drain_s=1),
        )
    )
    yield server.start()
    server.stop()


def ask(url: str, **fields: Any) -> dict[str, Any]:
    body = {
        "model": "demo",
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
        "temperature": 0,
        "max_tokens": 24,
        **fields,
    }
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]


def test_an_answer_keeps_to_its_schema(url: str):
    schema = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
    choice = ask(url, response_format=schema)
    assert choice["finish_reason"] == "stop"
    assert json.loads(choice["message"]["content"]).keys() == {"city", "unit"}


def test_sampling_logprobs_and_bias_work(url: str):
    fields = {"temperature": 0.8, "seed": 5, "max_tokens": 6}
    with_logprobs = ask(url, **fields, logprobs=True, top_logprobs=2)
    assert with_logprobs["message"]["content"] == ask(url, **fields)["message"]["content"]
    assert len(with_logprobs["logprobs"]["content"]) == 6
    penalised = ask(url, **fields, frequency_penalty=1.5, top_p=0.9)
    assert penalised["message"]["content"]
