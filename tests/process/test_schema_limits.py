"""The limits of the schema compiler as options of the command: the process, its pool and its HTTP answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from interlock.compiling.pool import CompilePool
from interlock.config import CompileConfig, SchemaLimits
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from tests.fakes.vllm import write_byte_tokenizer

WAIT_S = 60
ALTERNATIVES = "--schema-max-alternatives"


def alternatives(count: int) -> dict[str, Any]:
    return {"anyOf": [{"properties": {f"k{i}": {"const": i}}, "required": [f"k{i}"]} for i in range(count)]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("model")
    write_byte_tokenizer(folder, byte_tokenizer(("<|im_start|>", "<|im_end|>")))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|im_end|>", "chat_template": "{{ messages[0].content }}<|im_end|>"})
    )
    command = [sys.executable, "-m", "interlock", "serve", str(folder), "--runner", "fake", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--context-tokens", "4096", ALTERNATIVES, "20"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        with httpx.Client(base_url=process.stdout.readline().split()[-1], timeout=WAIT_S) as client:
            yield client
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)


def ask(server: httpx.Client, schema: dict[str, Any], **fields: Any) -> httpx.Response:
    body = {
        "model": server.get("/v1/models").json()["data"][0]["id"],
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 40,
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
    }
    return server.post("/v1/chat/completions", json=body | fields)


def test_a_refusal_over_http_names_the_limit_and_its_option(server: httpx.Client) -> None:
    assert ask(server, alternatives(10)).status_code == 200
    refused = ask(server, alternatives(30))
    assert refused.status_code == 400
    message = refused.json()["error"]["message"]
    assert "more than 20 alternatives" in message
    assert f"{ALTERNATIVES} raises the limit" in message


def test_the_limit_holds_for_tools_and_in_the_report(server: httpx.Client) -> None:
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": alternatives(30)}}
    refused = ask(server, {}, response_format={"type": "text"}, tools=[tool])
    assert refused.status_code == 400
    assert ALTERNATIVES in refused.json()["error"]["message"]
    report = server.post("/v1/check", json={"schema": alternatives(30)}).json()
    assert ALTERNATIVES in json.dumps(report)


async def test_each_pool_keeps_to_its_own_limits_also_in_what_it_remembers() -> None:
    limits = SchemaLimits(max_alternatives=20)
    spec = ConstraintSpec(root=JsonValue(json.dumps(alternatives(30))))
    narrow, wide = CompilePool(CompileConfig(schema_limits=limits), {}), CompilePool(CompileConfig(), {})
    await narrow.start()
    await wide.start()
    try:
        for is_cached in (False, True):
            with pytest.raises(InterlockError, match=f"{ALTERNATIVES} raises the limit"):
                await narrow.lower(spec)
            assert (await wide.lower(spec)).is_cached == is_cached
        with pytest.raises(InterlockError, match=ALTERNATIVES):
            await narrow.lower(spec, {"http://example.com/x": "true"})
    finally:
        await narrow.stop()
        await wide.stop()
