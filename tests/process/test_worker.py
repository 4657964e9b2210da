"""The worker as a process of its own: start, death, restart, shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from interlock.config import EngineConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.client import LocalEngine
from interlock.engine.ipc.messages import Abort
from interlock.errors import InterlockError
from interlock.metrics import Metrics

CONFIG = EngineConfig(
    model=Path("none"), runner="fake", slots=4, context_tokens=1_000_000, max_batch_tokens=64, mask_threads=1
)
LIMIT_S = 60.0


def make_request(request_id: str, **fields: Any) -> EngineRequest:
    settings: dict[str, Any] = {"prompt_ids": (1, 2, 3), "sampling": SamplingParams(), "max_tokens": 5} | fields
    return EngineRequest(request_id=request_id, **settings)


def endless(request_id: str) -> EngineRequest:
    return make_request(request_id, max_tokens=900_000)


@asynccontextmanager
async def running(config: EngineConfig = CONFIG, **options: Any) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(config, **options)
    try:
        async with asyncio.timeout(LIMIT_S):
            await engine.start()
        yield engine
    finally:
        await engine.stop()


async def collect(engine: LocalEngine, request: EngineRequest) -> list[EngineOutput]:
    async with asyncio.timeout(LIMIT_S):
        return [output async for output in engine.generate(request)]


async def ended(process: psutil.Process) -> None:
    """Until a process has gone."""
    async with asyncio.timeout(LIMIT_S):
        await asyncio.to_thread(process.wait, LIMIT_S)


def worker_of(engine: LocalEngine) -> psutil.Process:
    assert engine.worker_pid is not None
    return psutil.Process(engine.worker_pid)


async def test_a_request_runs_in_a_process_of_its_own():
    async with running() as engine:
        assert engine.phase == "ready"
        assert engine.max_context_tokens == 1_000_000
        assert engine.worker_pid not in (None, os.getpid())
        outputs = await collect(engine, make_request("r"))
        assert [output.finish_reason for output in outputs] == [None] * 4 + ["length"]
        assert (await engine.stats()).num_generated_tokens == 5
        worker = worker_of(engine)
    assert engine.phase == "stopping"
    assert not worker.is_running()


def ids_of(outputs: list[EngineOutput]) -> list[int]:
    return [token_id for output in outputs for token_id in output.token_ids]


def mixed_requests() -> list[EngineRequest]:
    """Long enough to be killed in the middle of."""
    return [
        make_request("greedy", max_tokens=1500, sampling=SamplingParams(temperature=0.0)),
        make_request("seeded", max_tokens=1500, sampling=SamplingParams(seed=3, presence_penalty=0.5)),
        make_request("bound", max_tokens=1500, constraint=grammar("start: /([a-z]{3} [0-9]{2};){400}/")),
        make_request("waits", max_tokens=40, prompt_ids=tuple(range(1, 200))),
        make_request("waits too", max_tokens=40, constraint=grammar("start: /[a-z]{40}/")),
    ]


def grammar(lark: str) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar=lark, key=lark)


@pytest.mark.parametrize("num_kills", [1, 3])
async def test_streams_survive_the_death_of_their_worker(num_kills: int):
    metrics = Metrics()
    config = replace(CONFIG, slots=3, max_worker_deaths=9)
    async with running(config, metrics=metrics) as engine:
        expected = [ids_of(await collect(engine, request)) for request in mixed_requests()]

        async def read(stream: AsyncIterator[EngineOutput]) -> list[EngineOutput]:
            return [output async for output in stream]

        streams = [engine.generate(request) for request in mixed_requests()]
        firsts = [await anext(stream) for stream in streams[:3]]
        reading = [asyncio.create_task(read(stream)) for stream in streams]
        for _ in range(num_kills):
            await kill_worker(engine)
        async with asyncio.timeout(LIMIT_S):
            rest = await asyncio.gather(*reading)
        outputs = [[first, *others] for first, others in zip(firsts, rest, strict=False)] + rest[3:]
        assert [ids_of(those) for those in outputs] == expected
        assert [those[-1].failure for those in outputs] == [None] * 5
        stats = await engine.stats()
        assert stats.restarts == num_kills
        assert stats.num_resumed > 0
        assert metrics.registry.get_sample_value("interlock_worker_restarts_total") == num_kills


async def kill_worker(engine: LocalEngine) -> None:
    """Once there is one, until the engine knows."""
    async with asyncio.timeout(LIMIT_S):
        await engine.start()
        worker = worker_of(engine)
        worker.kill()
        while engine.worker_pid == worker.pid:
            await asyncio.to_thread(worker.is_running)


async def test_a_request_that_kills_workers_dies_alone(tmp_path, monkeypatch):
    deadly = tmp_path / "deadly_worker.py"
    deadly.write_text(
        textwrap.dedent("""
            import os
            import sys
            from interlock.engine.worker import main
            from interlock.runners.fake import FakeRunner

            launch = FakeRunner.launch

            def launch_or_die(runner, batch):
                if 1 in batch.token_ids.tolist():
                    os.kill(os.getpid(), 9)
                return launch(runner, batch)

            FakeRunner.launch = launch_or_die
            sys.exit(main(sys.argv[1:]))
        """)
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    sampling = SamplingParams(temperature=0.0, logit_bias=((1, -100.0),))
    others = [
        make_request(f"r{i}", prompt_ids=(2, 3 + i), max_tokens=600, sampling=sampling) for i in range(6)
    ]  # more than slots: some wait when the worker dies
    async with running(replace(CONFIG, fairness_tokens=50), worker_module="deadly_worker") as engine:
        expected = [ids_of(await collect(engine, request)) for request in others]
        reading = [asyncio.create_task(collect(engine, request)) for request in others]
        while not (await engine.stats()).num_running:
            pass
        killed = await collect(engine, make_request("killer", prompt_ids=(1,)))
        assert killed[-1].failure is not None
        assert killed[-1].failure.code == "worker_died"
        assert [ids_of(outputs) for outputs in await asyncio.gather(*reading)] == expected
        assert (await engine.stats()).restarts == 2


async def test_who_may_be_what_kills_workers_is_given_up():
    async with running() as engine:
        stream = engine.generate(endless("killer"))
        for _ in range(2):
            await anext(stream)
            await kill_worker(engine)
        last = [output async for output in stream][-1]
        assert last.failure is not None
        assert last.failure.code == "worker_died"
        outputs = await collect(engine, make_request("next"))  # arrives while the worker restarts
        assert outputs[-1].finish_reason == "length"


async def test_nothing_is_resumed_when_that_is_switched_off():
    async with running(replace(CONFIG, max_worker_deaths=1)) as engine:
        streams = [engine.generate(endless(f"r{i}")) for i in range(2)]
        for stream in streams:
            await anext(stream)
        worker_of(engine).kill()
        for stream in streams:
            last = [output async for output in stream][-1]
            assert last.failure is not None
            assert last.failure.code == "worker_died"


async def test_a_request_can_be_aborted_while_it_waits_for_the_worker():
    async with running() as engine:
        stream = engine.generate(endless("interrupted"))
        await anext(stream)
        await kill_worker(engine)
        waiting = asyncio.create_task(collect(engine, make_request("waiting")))
        await asyncio.sleep(0)
        for name in ("waiting", "interrupted"):
            await engine.abort(name)
        assert [output.finish_reason for output in await waiting] == ["abort"]
        assert [output async for output in stream][-1].finish_reason == "abort"


async def test_a_reader_that_lags_pauses_its_request_alone():
    async with running(replace(CONFIG, slots=1, fairness_tokens=0)) as engine:
        slow = engine.generate(make_request("slow", max_tokens=3000, sampling=SamplingParams(temperature=0.0)))
        outputs = [await anext(slow)]
        # With one slot, others run only when the slow one has lost it.
        for i in range(2):
            assert (await collect(engine, make_request(f"r{i}", max_tokens=50)))[-1].finish_reason == "length"
        stats = await engine.stats()
        assert stats.num_running == 0
        assert stats.num_generated_tokens < 1500
        outputs += [output async for output in slow]
        assert outputs[-1].finish_reason == "length"
        assert len(ids_of(outputs)) == 3000


async def test_a_paused_stream_survives_the_death_of_its_worker():
    async with running(replace(CONFIG, slots=1, fairness_tokens=0)) as engine:
        request = make_request("slow", max_tokens=2000, sampling=SamplingParams(temperature=0.0))
        expected = ids_of(await collect(engine, request))
        slow = engine.generate(request)
        outputs = [await anext(slow)]
        await collect(engine, make_request("other"))  # runs once the slow one is paused
        await kill_worker(engine)
        await collect(engine, make_request("another"))
        outputs += [output async for output in slow]
        assert ids_of(outputs) == expected


async def test_a_worker_that_takes_no_messages_is_replaced(monkeypatch):
    monkeypatch.setattr("interlock.engine.worker_process._HIGH_WATER_MARK", 5)
    async with running(replace(CONFIG, max_worker_deaths=3)) as engine:
        stream = engine.generate(make_request("r", max_tokens=300))
        outputs = [await anext(stream)]
        worker = worker_of(engine)
        worker.suspend()
        for _ in range(100):  # together more than the socket's own buffers take
            engine._send(Abort(("nobody" * 20_000,)))
        async with asyncio.timeout(LIMIT_S):
            outputs += [output async for output in stream]
        assert len(ids_of(outputs)) == 300


@pytest.mark.parametrize("max_worker_deaths", [1, 2])
async def test_what_was_being_prepared_is_asked_of_the_next_worker(max_worker_deaths: int):
    constraint = grammar('start: "a"')
    async with running(replace(CONFIG, max_worker_deaths=max_worker_deaths)) as engine:
        worker = worker_of(engine)
        worker.suspend()
        preparing = asyncio.create_task(engine.prepare(constraint))
        await asyncio.sleep(0)
        worker.kill()
        if max_worker_deaths == 1:
            with pytest.raises(InterlockError) as error:
                await asyncio.wait_for(preparing, LIMIT_S)
            assert error.value.code == "worker_died"
        else:
            await asyncio.wait_for(preparing, LIMIT_S)
        await engine.prepare(constraint)


async def test_a_worker_that_keeps_dying_is_given_up(monkeypatch):
    monkeypatch.setattr("interlock.engine.restarts._MAX_DEATHS", 1)
    async with running(replace(CONFIG, max_worker_deaths=9)) as engine:
        stream = engine.generate(endless("r"))
        for _ in range(2):
            await anext(stream)
            await kill_worker(engine)
        last = [output async for output in stream][-1]
        assert last.failure is not None
        assert last.failure.code == "worker_died"
        (refused,) = await collect(engine, make_request("late"))
        assert engine.phase == "failed"
        assert refused.failure is not None
        assert refused.failure.code == "not_ready"


async def test_a_worker_that_cannot_start_says_why():
    engine = LocalEngine(EngineConfig(model=Path("/nowhere/model.gguf")))
    with pytest.raises(InterlockError, match=r"/nowhere/model\.gguf"):
        await asyncio.wait_for(engine.start(), LIMIT_S)
    assert engine.phase == "failed"
    await engine.stop()


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        ("Hello(99, '9.9', 1)", r"interlock 9\.9.*protocol 99"),
        ("Prepared(1)", "Prepared instead of Hello"),
    ],
)
async def test_a_worker_of_another_version_is_refused_and_ended(tmp_path, monkeypatch, hello: str, reason: str):
    stray = tmp_path / "stray_worker.py"
    stray.write_text(
        textwrap.dedent(f"""
            import sys
            from interlock.engine.ipc.endpoint import WorkerEndpoint
            from interlock.engine.ipc.messages import Hello, Prepared
            from interlock.engine.ipc.startup import decode_startup

            endpoint = WorkerEndpoint(decode_startup(sys.argv[1]).endpoint)
            endpoint.send({hello})
            sys.stdin.read()
        """)
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    engine = LocalEngine(CONFIG, worker_module="stray_worker")
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(InterlockError, match=reason):
        await asyncio.wait_for(engine.start(), LIMIT_S)
    assert {child.pid for child in psutil.Process().children()} == before
    await engine.stop()


async def test_the_worker_ends_when_its_parent_is_killed(tmp_path):
    parent = tmp_path / "parent.py"
    parent.write_text(
        textwrap.dedent("""
            import asyncio
            from pathlib import Path
            from interlock.config import EngineConfig
            from interlock.engine.client import LocalEngine

            async def main():
                engine = LocalEngine(EngineConfig(model=Path("none"), runner="fake"))
                await engine.start()
                print(engine.worker_pid, flush=True)
                await asyncio.Event().wait()

            asyncio.run(main())
        """)
    )
    process = await asyncio.create_subprocess_exec(sys.executable, str(parent), stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(LIMIT_S):
        worker = psutil.Process(int(await process.stdout.readline()))
        process.kill()
        await process.wait()
    await ended(worker)


async def test_an_interrupt_from_the_terminal_does_not_end_the_worker():
    async with running() as engine:
        os.kill(worker_of(engine).pid, signal.SIGINT)
        outputs = await collect(engine, make_request("r"))
        assert outputs[-1].finish_reason == "length"


async def test_a_terminated_worker_finishes_what_runs():
    async with running() as engine:
        stream = engine.generate(make_request("r", max_tokens=200))
        await anext(stream)
        worker = worker_of(engine)
        worker.terminate()
        assert [output async for output in stream][-1].finish_reason == "length"
        await ended(worker)


async def test_a_drain_lets_running_requests_finish():
    async with running() as engine:
        stream = engine.generate(make_request("r", max_tokens=500))
        outputs = [await anext(stream)]
        stopping = asyncio.create_task(engine.stop(drain_s=LIMIT_S))
        outputs += [output async for output in stream]
        await stopping
        assert outputs[-1].finish_reason == "length"
        assert sum(len(output.token_ids) for output in outputs) == 500


async def test_what_does_not_finish_in_time_ends_with_shutting_down():
    async with running() as engine:
        stream = engine.generate(endless("r"))
        await anext(stream)
        await engine.stop(drain_s=0.1)
        last = [output async for output in stream][-1]
        assert last.failure is not None
        assert last.failure.code == "shutting_down"
        (late,) = await collect(engine, make_request("late"))
        assert late.failure is not None
        assert late.failure.code == "shutting_down"


@pytest.mark.parametrize("how", ["close", "cancel", "abort"])
async def test_a_reader_that_leaves_frees_its_slot(how: str):
    async with running() as engine:
        stream = engine.generate(endless("r"))
        await anext(stream)
        if how == "close":
            await stream.aclose()
        elif how == "abort":
            await engine.abort("r")
            assert [output async for output in stream][-1].finish_reason == "abort"
        else:
            await _cancel_reader(stream)
        async with asyncio.timeout(LIMIT_S):
            while (await engine.stats()).num_running:
                pass


async def _cancel_reader(stream: AsyncIterator[EngineOutput]) -> None:
    started = asyncio.Event()

    async def read() -> None:
        async for _ in stream:
            started.set()

    reading = asyncio.create_task(read())
    await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await stream.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("num_turns", [0, 1, 3, 50])
async def test_an_engine_stopped_while_it_starts_leaves_nothing(num_turns: int):
    before = {child.pid for child in psutil.Process().children()}
    engine = LocalEngine(CONFIG)
    starting = asyncio.create_task(engine.start())
    for _ in range(num_turns):
        await asyncio.sleep(0)
    await engine.stop()
    with pytest.raises(InterlockError) as error:
        await starting
    assert error.value.code == "shutting_down"
    assert engine.worker_pid is None
    assert {child.pid for child in psutil.Process().children()} == before


async def test_a_refusal_of_the_worker_reaches_the_reader():
    async with running() as engine:
        (output,) = await collect(engine, make_request("r", prompt_ids=(999_999,)))
        assert output.failure is not None
        assert output.failure.code == "invalid_value"
        bad = LoweredConstraint(provider="llguidance", grammar="start: nothing_here", key="bad")
        with pytest.raises(InterlockError) as refused:
            await engine.prepare(bad)
        assert refused.value.code == "invalid_grammar"


async def test_a_reader_that_does_not_read_stops_nobody():
    async with running() as engine:
        idle = engine.generate(make_request("idle", max_tokens=20_000))
        await anext(idle)
        outputs = await collect(engine, make_request("r", max_tokens=50))
        assert outputs[-1].finish_reason == "length"
        await idle.aclose()
