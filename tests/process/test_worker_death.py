"""What a worker that dies leaves behind: its streams go on in the next one."""

from __future__ import annotations

import asyncio
import os
import textwrap
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.ipc.messages import Abort
from interlock.errors import InterlockError
from interlock.metrics import Metrics
from tests.process.workers import (
    CONFIG,
    LIMIT_S,
    collect,
    endless,
    grammar,
    ids_of,
    kill_worker,
    make_request,
    running,
    worker_of,
)


def mixed_requests() -> list[EngineRequest]:
    """Long enough to be killed in the middle of."""
    return [
        make_request("greedy", max_tokens=1500, sampling=SamplingParams(temperature=0.0)),
        make_request("seeded", max_tokens=1500, sampling=SamplingParams(seed=3, presence_penalty=0.5)),
        make_request("bound", max_tokens=1500, constraint=grammar("start: /([a-z]{3} [0-9]{2};){400}/")),
        make_request("waits", max_tokens=40, prompt_ids=tuple(range(1, 200))),
        make_request("waits too", max_tokens=40, constraint=grammar("start: /[a-z]{40}/")),
    ]


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
