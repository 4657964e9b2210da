"""A whole server in front of a real vLLM: what is particular to it. The suites of tests/clients run over it with
``--engine vllm``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from benchmarks.peers.vllm_server import VllmServer
from interlock.config import EngineConfig, HttpConfig, ServerConfig, VllmConfig
from interlock.launch import BackgroundServer

USER: Any = [{"role": "user", "content": "What is the weather in Oslo?"}]
UNIQUE = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
ENFORCED_BY = {"masks": "vllm", "tokens": "interlock", "guards": None}


@pytest.fixture(scope="module")
def url(vllm: VllmServer, demo_model: Path) -> Iterator[str]:
    server = BackgroundServer(
        ServerConfig(
            served_name="demo",
            engine=EngineConfig(model=demo_model),
            http=HttpConfig(port=0, drain_s=1),
            vllm=VllmConfig(urls=(vllm.url,), tokenizer=demo_model),
        )
    )
    yield server.start()
    server.stop()


@pytest.fixture(scope="module")
def ai(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120) as client:
        yield client


def chat(ai: openai.OpenAI, **fields: Any) -> Any:
    settings = {"temperature": 0, "max_tokens": 80, **fields}
    return ai.chat.completions.create(model="demo", messages=USER, **settings)


def test_what_cannot_be_held_is_refused_by_its_place(ai: openai.OpenAI):
    format_ = {"type": "json_schema", "json_schema": {"name": "w", "schema": UNIQUE}}
    with pytest.raises(openai.BadRequestError) as refused:
        chat(ai, response_format=format_)
    error: Any = refused.value.body
    assert error["problems"][0]["keyword"] == "uniqueItems"
    with pytest.raises(openai.BadRequestError, match="priority cannot be had from the engine vllm"):
        chat(ai, extra_body={"priority": 1})


def test_answers_and_checks_say_who_enforces(ai: openai.OpenAI, url: str):
    held = chat(ai, extra_body={"structured_outputs": {"choice": ["yes", "no"]}})
    assert held.interlock["enforced_by"] == ENFORCED_BY
    assert "enforced_by" not in (getattr(chat(ai, max_tokens=2), "interlock", None) or {})
    asked = {"schema": UNIQUE, "interlock": {"schema_mode": "relaxed"}}
    checked = httpx.post(f"{url}/v1/check", json=asked, timeout=120).json()
    assert (checked["ok"], checked["enforced_by"]) == (True, ENFORCED_BY)
    assert [row["state"] for row in checked["schemas"][0]["report"] if row["keyword"] == "uniqueItems"] == [
        "unenforced"
    ]


def test_stop_strings_and_scores(ai: openai.OpenAI):
    whole = chat(ai, max_tokens=12).choices[0].message.content
    word = whole.split()[2]
    cut = chat(ai, max_tokens=12, stop=[word])
    assert cut.choices[0].message.content == whole.split(word)[0]
    assert cut.choices[0].finish_reason == "stop"
    scored = chat(ai, max_tokens=4, logprobs=True, top_logprobs=2)
    assert len(scored.choices[0].logprobs.content) == 4
