"""``interlock serve`` as a process: worker death, signals, refusals at start."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytestmark = pytest.mark.model

EXIT_S = 60
FOR_EVER = {"2": -100, "0": -100}


@contextmanager
def serve(model: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [
        sys.executable,
        "-m",
        "interlock",
        "serve",
        str(model),
        "--port",
        "0",
        "--threads",
        "1",
        "--slots",
        "2",
    ]
    process = subprocess.Popen(
        [*command, "--context-tokens", "1024", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, process.communicate(timeout=EXIT_S)
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate(timeout=EXIT_S)


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Count."}], "temperature": 0, **fields}


def worker_of(process: subprocess.Popen[str]) -> psutil.Process:
    return next(
        child
        for child in psutil.Process(process.pid).children()
        if "interlock.engine.worker" in child.cmdline()
    )


def test_a_stream_survives_the_death_of_its_worker_without_a_character_lost_or_repeated(
    demo_model: Path,
) -> None:
    with serve(demo_model, "--served-name", "m") as (process, url):
        body = ask(max_tokens=80, logit_bias=FOR_EVER)
        whole = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60).json()["choices"][0]
        text = ""
        with httpx.stream(
            "POST", f"{url}/v1/chat/completions", json={**body, "stream": True}, timeout=60
        ) as response:
            for line in response.iter_lines():
                if not line.startswith("data: {"):
                    continue
                choice = json.loads(line[6:])["choices"][0]
                text += choice["delta"].get("content") or ""
                if text and text == choice["delta"].get("content"):
                    worker_of(process).send_signal(signal.SIGKILL)

        assert text == whole["message"]["content"]
        assert choice["finish_reason"] == whole["finish_reason"] == "length"
        assert "interlock_worker_restarts_total 1.0" in httpx.get(f"{url}/metrics").text
        assert httpx.get(f"{url}/health").json()["phase"] == "ready"


def test_a_stream_that_is_not_resumed_ends_with_an_error_and_the_next_request_works(demo_model: Path) -> None:
    with serve(demo_model, "--served-name", "m", "--max-worker-deaths", "1") as (process, url):
        body = ask(stream=True, max_tokens=800, logit_bias=FOR_EVER)
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as response:
            events = (line[6:] for line in response.iter_lines() if line.startswith("data: "))
            next(event for event in events if '"content":"' in event)
            worker_of(process).send_signal(signal.SIGKILL)
            *_, error, done = events

        assert json.loads(error)["error"]["code"] == "worker_died"
        assert done == "[DONE]"
        answer = httpx.post(f"{url}/v1/chat/completions", json=ask(max_tokens=4), timeout=60)
        assert answer.status_code == 200, answer.text
        assert httpx.get(f"{url}/health").json()["phase"] == "ready"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_answers_finish_and_exits_cleanly(
    demo_model: Path, number: signal.Signals
) -> None:
    with serve(demo_model, "--served-name", "m") as (process, url):
        worker = worker_of(process)
        body = ask(stream=True, max_tokens=60, logit_bias=FOR_EVER)
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as response:
            events = (line[6:] for line in response.iter_lines() if line.startswith("data: "))
            next(event for event in events if '"content":"' in event)
            process.send_signal(number)
            *_, last, done = events

        assert json.loads(last)["choices"][0]["finish_reason"] == "length"
        assert done == "[DONE]"
        assert process.wait(EXIT_S) == 0
        assert not worker.is_running()


@pytest.mark.parametrize(
    ("options", "num_signals"), [(("--drain-s", "1"), 1), (("--drain-s", "60"), 2)], ids=["drain", "hurry"]
)
def test_an_answer_that_outlasts_the_drain_time_ends_with_an_error_event(
    demo_model: Path, options: tuple[str, ...], num_signals: int
) -> None:
    with serve(demo_model, "--served-name", "m", *options) as (process, url):
        body = ask(stream=True, max_tokens=900, logit_bias=FOR_EVER)
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as response:
            events = (line[6:] for line in response.iter_lines() if line.startswith("data: "))
            next(event for event in events if '"content":"' in event)
            process.send_signal(signal.SIGTERM)
            if num_signals > 1:
                wait_until_refused(url)
                process.send_signal(signal.SIGTERM)
            *_, error, done = events

        assert json.loads(error)["error"]["code"] == "shutting_down"
        assert done == "[DONE]"
        assert process.wait(EXIT_S) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def wait_until_refused(url: str) -> None:
    with suppress(httpx.TransportError):
        while True:
            httpx.get(f"{url}/health")


def test_the_port_answers_while_the_model_loads_and_then_says_ready(demo_model: Path) -> None:
    with serve(demo_model) as (_process, url):
        assert httpx.get(f"{url}/health").status_code == 200
        assert httpx.get(f"{url}/v1/models").json()["data"][0]["id"] == demo_model.stem


def test_small_answers_do_not_wait_for_the_clients_acknowledgement(demo_model: Path) -> None:
    with serve(demo_model) as (_process, url), httpx.Client() as client:  # one connection, kept alive
        took = [client.get(f"{url}/health").elapsed.total_seconds() for _ in range(10)]

    assert min(took[1:]) < 0.03  # a delayed ACK takes 0.04


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/nowhere/model.gguf"], "no model at /nowhere/model.gguf"),
        (["demo", "--family", "qwem"], "qwem"),
        (["demo", "--slots", "0"], "--slots"),
    ],
)
def test_what_is_wrong_at_start_is_said_in_a_line(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "interlock", "serve", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=EXIT_S)

    assert result.returncode != 0
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_taken_port_is_said_in_a_line(demo_model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "interlock", "serve", str(demo_model), "--port", port]
        result = subprocess.run(command, capture_output=True, text=True, timeout=EXIT_S)

    assert result.returncode != 0
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr
