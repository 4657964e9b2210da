"""Faults in each part of the real chain of processes: the request that has one gets an error, the others their text."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import select
import socket
import textwrap
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from interlock import launch
from interlock.config import EngineConfig, FakeConfig, HttpConfig, ServerConfig
from interlock.engine.client import LocalEngine
from interlock.families.wire.parse import StreamParser
from interlock.serving.detokenizer import Detokenizer
from interlock.serving.stop_strings import StopStrings
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from tests.fakes.vllm import write_byte_tokenizer

LIMIT_S = 120
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)
# What a request does to have a fault: a seed, or a byte of its prompt.
MATCHER, REJECTED, GUARD, SAMPLER, MASK_SIZE, EMPTY_MASK, PADDED = range(901, 908)
POISON = "\x02"
# Or a letter that the model says.
NOT_A_NUMBER, DETOKENIZER, STOP_STRING, PARSER = "\x01", "Q", "W", "Z"

FAULTY_WORKER = """
    import sys
    from msgspec.structs import replace

    from interlock.constraints.providers.base import MatcherError
    from interlock.constraints.schema.guards.matcher import GuardedMatcher
    from interlock.engine import execution
    from interlock.engine.worker import main
    from interlock.runners.fake import FakeRunner, Faults
    from interlock.sampling import select

    make_runner, rows_of, choose = FakeRunner.__init__, execution.sampling_rows, select.select
    MATCHER, REJECTED, GUARD, SAMPLER, MASK_SIZE, EMPTY_MASK, PADDED = range(901, 908)

    def faulty_runner(runner, *arguments, **options):
        make_runner(runner, *arguments, **options)
        runner.faults = Faults(nan_after_ids={1}, poison_ids={2})

    class Broken:
        def __init__(self, matcher, methods, fault):
            self.matcher, self.methods, self.fault = matcher, methods, fault

        def __getattr__(self, name):
            if name in self.methods:
                raise self.fault
            return getattr(self.matcher, name)

    def faulty_rows(sequence, draft, masks, vocab_size):
        rows = rows_of(sequence, draft, masks, vocab_size)
        state, seed = sequence.constraint, sequence.request.sampling.seed
        if sequence.num_output_tokens < 4:
            return rows
        if seed == MATCHER:
            state._matcher = Broken(state._matcher, ("fill", "accept"), KeyError("a fault"))
        if seed == REJECTED:
            state._matcher = Broken(state._matcher, ("accept",), MatcherError("the token is not allowed"))
        if seed == GUARD:
            assert isinstance(state._matcher, GuardedMatcher)
            state._matcher._turn = None
        if seed == MASK_SIZE:
            return [replace(row, mask=row.mask[:-1]) for row in rows]
        if seed == EMPTY_MASK:
            return [replace(row, mask=row.mask & 0) for row in rows]
        return rows

    def faulty_choice(values, row):
        if row.params.seed == SAMPLER and row.position > 3:
            raise KeyError("a fault")
        choice = choose(values, row)
        return replace(choice, token_id=values.size) if row.params.seed == PADDED else choice

    FakeRunner.__init__, execution.sampling_rows, select.select = faulty_runner, faulty_rows, faulty_choice
    sys.exit(main(sys.argv[1:]))
"""
SCHEMA = {"type": "array", "items": {"type": "string", "maxLength": 6}, "uniqueItems": True, "maxItems": 9}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
SAID = '["one", "two", "six", "ten"]'


def faulty(method: Any, letter: str) -> Any:
    """A method that fails on a text with ``letter``, or on its token."""

    @functools.wraps(method)
    def wrapped(self: Any, given: Any) -> Any:
        if (letter in given) if isinstance(given, str) else given == ord(letter):
            raise KeyError("a fault of our own")
        return method(self, given)

    return wrapped


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("faults")
    (folder / "faulty_worker.py").write_text(textwrap.dedent(FAULTY_WORKER))
    write_byte_tokenizer(folder, byte_tokenizer())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|im_end|>", "chat_template": TEMPLATE})
    )
    script = folder / "script.json"
    entries = [{"when": f"say {letter}", "say": f"two {letter} letters"} for letter in "\x01QWZ"]
    script.write_text(json.dumps([*entries, {"when": "say", "say": SAID}]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        patch.setattr(launch, "LocalEngine", functools.partial(LocalEngine, worker_module="faulty_worker"))
        patch.setattr(Detokenizer, "push", faulty(Detokenizer.push, DETOKENIZER))
        patch.setattr(StopStrings, "push", faulty(StopStrings.push, STOP_STRING))
        patch.setattr(StreamParser, "push_text", faulty(StreamParser.push_text, PARSER))
        engine = EngineConfig(
            model=folder,
            runner="fake",
            slots=8,
            context_tokens=4096,
            mask_threads=1,
            forced_tokens=False,
            fake=FakeConfig(mode="scripted", script=script, tokenizer=folder),
        )
        server = launch.BackgroundServer(
            ServerConfig(served_name="m", family="qwen3", engine=engine, http=HttpConfig(port=0, drain_s=1))
        )
        server._server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)  # of connections, too
        yield server.start()
        server.stop()


def body(content: str = "say", **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}], "max_tokens": 60, **fields}


async def ask(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/chat/completions", json=body(**fields))
    found: dict[str, Any] = answer.json()
    return found


async def streamed_error(client: httpx.AsyncClient, **fields: Any) -> str:
    """The code of the error that a stream ends with, or that came in its place."""
    answer = await client.post("/v1/chat/completions", json=body(stream=True, **fields))
    if answer.status_code == 200:
        *_, error, done = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
        assert done == "[DONE]"
    else:
        error = answer.text
    code: str = json.loads(error)["error"]["code"]
    return code


CONSTRAINED = {"response_format": FORMAT}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "matcher": ({"seed": MATCHER, **CONSTRAINED}, "matcher_failed"),
    "rejected token": ({"seed": REJECTED, **CONSTRAINED}, "matcher_failed"),
    "guard": ({"seed": GUARD, **CONSTRAINED}, "matcher_failed"),
    "sampler": ({"seed": SAMPLER, **CONSTRAINED}, "sampling_failed"),
    "mask of another size": ({"seed": MASK_SIZE, **CONSTRAINED}, "sampling_failed"),
    "mask without a token": ({"seed": EMPTY_MASK, **CONSTRAINED}, "no_token_allowed"),
    "padded id": ({"seed": PADDED}, "sampling_failed"),
    "logits that are no numbers": ({"content": f"say {NOT_A_NUMBER}"}, "sampling_failed"),
    "forward pass": ({"content": POISON}, "forward_failed"),
    "detokenizer": ({"content": f"say {DETOKENIZER}"}, "internal_error"),
    "stop strings": ({"content": f"say {STOP_STRING}", "stop": ["nothing"]}, "internal_error"),
    "parser": ({"content": f"say {PARSER}"}, "internal_error"),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_fault_ends_the_request_that_has_it_with_its_reason_and_no_other(url: str, case: str) -> None:
    fields, code = CASES[case]
    async with httpx.AsyncClient(base_url=url, timeout=LIMIT_S) as client:
        free, bound, whole, streamed = await asyncio.gather(
            ask(client, content="say"),
            ask(client, content="say it", **CONSTRAINED),
            ask(client, **fields),
            streamed_error(client, **fields),
        )
        for neighbour in (free, bound):
            assert neighbour["choices"][0]["message"]["content"] == SAID
            assert neighbour["choices"][0]["finish_reason"] == "stop"
        assert whole["error"]["code"] == code
        assert streamed == code
        metrics = (await client.get("/metrics")).text
    assert "interlock_requests_in_flight 0.0" in metrics
    assert "interlock_worker_restarts_total 0.0" in metrics


async def test_a_client_that_reads_nothing_is_paused_alone_and_loses_no_character(url: str) -> None:
    no_faults = {
        str(ord(letter)): -100 for letter in NOT_A_NUMBER + POISON + DETOKENIZER + STOP_STRING + PARSER
    }
    long = body("speak") | {"max_tokens": 2500, "ignore_eos": True, "temperature": 0, "logit_bias": no_faults}
    address = urlsplit(url)
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.connect((address.hostname, address.port))
        content = json.dumps(long | {"stream": True}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\nconnection: close\r\ncontent-length: {len(content)}"
        stalled.sendall(f"{head}\r\ncontent-type: application/json\r\n\r\n".encode() + content)
        async with httpx.AsyncClient(base_url=url, timeout=LIMIT_S) as client, asyncio.timeout(LIMIT_S):
            while not await is_paused(client):
                assert (
                    not select.select([stalled], [], [], 0)[0]
                    or stalled.recv(15, socket.MSG_PEEK) == b"HTTP/1.1 200 OK"
                )
            neighbour = await ask(client, content="say")
            assert neighbour["choices"][0]["message"]["content"] == SAID
            whole = (await client.post("/v1/chat/completions", json=long)).json()["choices"][0]
        stalled.settimeout(LIMIT_S)
        received = b"".join(iter(lambda: stalled.recv(1 << 20), b""))
    events = [line[6:] for line in received.decode().splitlines() if line.startswith("data: {")]
    choices = [json.loads(event)["choices"][0] for event in events]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == whole["message"]["content"]
    assert choices[-1]["finish_reason"] == whole["finish_reason"] == "length"


async def is_paused(client: httpx.AsyncClient) -> bool:
    """A request is in flight, and none runs."""
    metrics = (await client.get("/metrics")).text
    return "in_flight 1.0" in metrics and "interlock_engine_running_requests 0.0" in metrics
