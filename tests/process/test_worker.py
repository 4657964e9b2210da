"""The worker as a process of its own: start, readers, shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from interlock.config import EngineConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput
from interlock.core.sampling import SamplingParams
from interlock.engine.client import LocalEngine
from interlock.errors import InterlockError
from tests.process.workers import (
    CONFIG,
    LIMIT_S,
    collect,
    ended,
    endless,
    ids_of,
    make_request,
    running,
    worker_of,
)


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
