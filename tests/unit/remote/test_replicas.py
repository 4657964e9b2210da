"""Who gets a request."""

from __future__ import annotations

import asyncio

from tests.fakes.vllm import FakeVllm
from tests.unit.remote.test_vllm import collect, request, text

PREFIX = "x" * 128


async def test_requests_spread_over_the_servers(make_server, make_engine):
    gate = asyncio.Event()
    servers: list[FakeVllm] = [await make_server("ok", wait=gate.wait) for _ in range(2)]
    engine = await make_engine(*servers)
    asking = [asyncio.create_task(collect(engine, request(request_id=f"r{one}"))) for one in range(8)]
    async with asyncio.timeout(30):
        await servers[0].until(lambda one: one.num_running + servers[1].num_running == 8)
    assert abs(servers[0].num_running - servers[1].num_running) <= 3
    gate.set()
    assert [text(outputs) for outputs in await asyncio.gather(*asking)] == ["ok"] * 8


async def test_a_prompt_goes_where_its_beginning_is_known(make_server, make_engine):
    servers: list[FakeVllm] = [await make_server("ok") for _ in range(3)]
    engine = await make_engine(*servers)
    for tail in ("a", "b", "c", "d"):
        await collect(engine, request(PREFIX + tail))
    assert sorted(len(server.requests) for server in servers) == [0, 0, 4]


async def test_a_server_that_says_it_is_ill_gets_nothing(make_server, make_engine):
    ill, well = await make_server("ill", healthy=False), await make_server("well")
    engine = await make_engine(ill, well)
    assert [text(await collect(engine, request())) for _ in range(3)] == ["well"] * 3
