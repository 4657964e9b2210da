from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from interlock.config import EngineConfig, FakeConfig, LlamaCppConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import (
    EngineFailure,
    EngineOutput,
    EngineRequest,
    EngineStats,
    ThinkingBudget,
    TokenLogprob,
)
from interlock.core.sampling import SamplingParams
from interlock.engine.ipc import messages
from interlock.engine.ipc.channel import (
    ProtocolError,
    check_hello,
    decode_from_client,
    decode_from_worker,
    encode,
)
from interlock.engine.ipc.startup import Startup, decode_startup, encode_startup

CONSTRAINT = LoweredConstraint(provider="llguidance", grammar='start: "ü"', key="k", notes=("a", "b"))
REQUEST = EngineRequest(
    request_id="r",
    prompt_ids=(1, 2, 3),
    sampling=SamplingParams(temperature=0.5, logit_bias=((4, -1.5),), seed=2**64 - 1, logprobs=3),
    max_tokens=9,
    stop_ids=(7, 8),
    constraint=CONSTRAINT,
    thinking=ThinkingBudget(max_tokens=5, close_ids=(11, 12)),
    priority=-1,
    deadline_s=1.5,
    report_accepting=True,
    resume_ids=(5, 6),
)
OUTPUT = EngineOutput(
    request_id="r",
    token_ids=(5,),
    logprobs=(TokenLogprob(token_id=5, logprob=-0.5, top=((5, -0.5), (6, -1.0))),),
    finish_reason="error",
    failure=EngineFailure(code="worker_died", message="m"),
    is_accepting=True,
    num_prompt_tokens=3,
    num_cached_tokens=1,
)
FROM_WORKER = [
    messages.Hello(1, "0.1", 42),
    messages.PhaseChanged("loading_model", "detail"),
    messages.Ready(context_tokens=10, num_slots=2, vocab_size=300, runner="fake"),
    messages.Outputs((OUTPUT, EngineOutput(request_id="s"))),
    messages.Prepared(3, "invalid_grammar", "m"),
    messages.StatsAnswer(4, EngineStats(num_steps=7, step_s=0.25)),
]
FROM_CLIENT = [
    messages.Submit(REQUEST),
    messages.Abort(("r", "s")),
    messages.Pause(("r",)),
    messages.Unpause(("r",)),
    messages.Prepare(5, CONSTRAINT),
    messages.StatsQuery(6),
    messages.Shutdown(1.5),
]


@pytest.mark.parametrize("message", FROM_WORKER, ids=lambda message: type(message).__name__)
def test_a_message_of_the_worker_survives_the_wire(message):
    assert decode_from_worker(encode(message)) == message


@pytest.mark.parametrize("message", FROM_CLIENT, ids=lambda message: type(message).__name__)
def test_a_message_of_the_client_survives_the_wire(message):
    assert decode_from_client(encode(message)) == message


def test_every_message_type_is_covered_above():
    assert {type(message) for message in FROM_WORKER} == set(get_args(messages.WorkerMessage))
    assert {type(message) for message in FROM_CLIENT} == set(get_args(messages.ClientMessage))


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", msgspec.msgpack.encode({"type": "Nobody"}), encode(messages.StatsQuery(1))[:-1]]
)
def test_garbage_is_a_protocol_error(data: bytes):
    with pytest.raises(ProtocolError, match="unreadable"):
        decode_from_worker(data)
    with pytest.raises(ProtocolError, match="unreadable"):
        decode_from_client(data)


def test_a_message_in_the_wrong_direction_is_a_protocol_error():
    with pytest.raises(ProtocolError, match="unreadable"):
        decode_from_client(encode(FROM_WORKER[0]))


def test_hello_of_this_version_passes():
    hello = messages.Hello(messages.PROTOCOL_VERSION, "0.1", 42)
    assert check_hello(hello) is hello


def test_hello_of_another_version_names_both():
    with pytest.raises(
        ProtocolError, match=rf"interlock 9\.9.*protocol 99.*speaks {messages.PROTOCOL_VERSION}"
    ):
        check_hello(messages.Hello(99, "9.9", 42))


def test_another_first_message_is_refused():
    with pytest.raises(ProtocolError, match="Prepared instead of Hello"):
        check_hello(messages.Prepared(1))


def test_hello_of_a_newer_version_with_more_fields_can_be_read():
    newer = msgspec.msgpack.encode(
        {"type": "Hello", "protocol_version": 99, "package_version": "9", "pid": 1, "more": [1]}
    )
    with pytest.raises(ProtocolError, match="protocol 99"):
        check_hello(decode_from_worker(newer))


def test_startup_survives_the_command_line():
    config = EngineConfig(
        model=Path("/models/a b.gguf"),
        runner="fake",
        llama_cpp=LlamaCppConfig(threads=3),
        fake=FakeConfig(mode="scripted", script=Path("/s.json")),
    )
    startup = Startup(endpoint="ipc:///tmp/x", log_level="info", config=config)
    assert decode_startup(encode_startup(startup)) == startup
