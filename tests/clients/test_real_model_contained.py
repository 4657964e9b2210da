"""The whole server on the embedded model, asked by clients that mean harm or leave: nobody else notices."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.clients.asking import ask, json_schema, metric, post

pytestmark = pytest.mark.model

WAIT_S = 60
STALL_S = 4  # far above the time of a token on any machine, far below what a stalled server would show


@pytest.fixture(scope="module")
def url(demo_server: Any) -> Iterator[str]:
    with demo_server(slots=12, context_tokens=1024) as url:
        yield url


def test_a_client_that_leaves_frees_its_place(url: str) -> None:
    body = ask("Count for ever.", max_tokens=900, logit_bias={"2": -100, "0": -100}, stream=True)
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as response:
        next(line for line in response.iter_lines() if '"content":' in line and '"content":""' not in line)
    done = threading.Event()

    def wait() -> None:
        while metric(url, "interlock_engine_running_requests") or metric(url, "interlock_requests_in_flight"):
            pass
        done.set()

    threading.Thread(target=wait, daemon=True).start()

    assert done.wait(20)


HOSTILE: dict[str, dict[str, Any]] = {
    "self reference": {"response_format": json_schema({"$ref": "#"})},
    "regex bomb": {"structured_outputs": {"regex": "((a{0,500}){0,500}){0,500}"}},
    "catastrophic": {"structured_outputs": {"regex": r"(?:\S+\s+){0,99}\S+" * 20}},
    "matches nothing": {"structured_outputs": {"grammar": 'start: "a" start'}},
    "20,000 strings": {"response_format": json_schema({"enum": [f"value-{n}" for n in range(20_000)]})},
    "5 MB": {"response_format": json_schema({"enum": ["x" * 5_000_000]})},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_constraints_end_in_bounded_time_while_a_stream_goes_on(url: str, name: str) -> None:
    pace = ask("Count.", max_tokens=900, logit_bias={"2": -100, "0": -100}, stream=True)
    answered = threading.Event()
    statuses: list[int] = []

    def send() -> None:
        statuses.append(post(url, ask("x", max_tokens=8, **HOSTILE[name])).status_code)
        answered.set()

    with httpx.stream("POST", f"{url}/v1/chat/completions", json=pace, timeout=60) as response:
        lines = (line for line in response.iter_lines() if line.startswith("data: {"))
        next(lines)
        threading.Thread(target=send, daemon=True).start()
        gaps, last = [], time.monotonic()
        for _ in lines:
            gaps.append(time.monotonic() - last)
            last += gaps[-1]
            if answered.is_set():
                break

    assert answered.wait(WAIT_S)
    assert statuses[0] in (200, 400)
    assert len(gaps) > 1
    assert max(gaps) < STALL_S


def test_a_schema_nested_ten_thousand_deep_is_refused(url: str) -> None:
    deep = '{"type":"array","items":' * 10_000 + "{}" + "}" * 10_000
    body = (
        '{"model":"demo","messages":[{"role":"user","content":"x"}],"response_format":'
        f'{{"type":"json_schema","json_schema":{{"name":"a","schema":{deep}}}}}}}'
    )
    response = httpx.post(
        f"{url}/v1/chat/completions", content=body, headers={"content-type": "application/json"}, timeout=60
    )

    assert response.status_code == 400
    assert response.json()["error"]["code"] in ("invalid_json", "invalid_value", "constraint_too_complex")


def test_every_unsupported_keyword_is_named_before_the_first_byte(url: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": r"(a)\1"},
            "b": {"type": "string", "pattern": r"(?<=x)y"},
        },
    }
    response = post(url, ask("x", response_format=json_schema(schema), stream=True))
    error = response.json()["error"]

    assert response.status_code == 400
    assert error["param"] == "response_format.json_schema.schema"
    assert {problem["pointer"] for problem in error["problems"]} == {
        "/properties/a/pattern",
        "/properties/b/pattern",
    }
