"""Several answers to one request: independent seeds, one stream, nobody starves."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from interlock.core.request import GenerateRequest
from interlock.core.sampling import SamplingOptions
from interlock.serving.fan_out import FanIn, fan_out

REQUEST = GenerateRequest(request_id="r", model="m", prompt="x", sampling=SamplingOptions(seed=7))


def test_answers_differ_in_id_and_seed_only():
    found = fan_out(REQUEST, 3)
    assert [request.sampling.seed for request in found] == [7, 8, 9]
    assert len({request.request_id for request in found}) == 3
    assert {replace(request, request_id="", sampling=SamplingOptions()) for request in found} == {
        replace(REQUEST, request_id="", sampling=SamplingOptions())
    }


def test_one_answer_is_the_request_itself():
    assert fan_out(REQUEST, 1) == (REQUEST,)


def test_without_a_seed_the_answers_still_differ():
    seeds = {request.sampling.seed for request in fan_out(replace(REQUEST, sampling=SamplingOptions()), 4)}
    assert len(seeds) == 4


def test_the_largest_seed_goes_round():
    request = replace(REQUEST, sampling=SamplingOptions(seed=2**64 - 1))
    assert [one.sampling.seed for one in fan_out(request, 2)] == [2**64 - 1, 0]


def source(*values: int):
    waiting = iter(values)

    async def pull() -> int:
        return next(waiting)

    return pull


@pytest.mark.parametrize("n", [1, 3])
async def test_every_value_comes_in_its_sources_order(n):
    merged = FanIn([source(i, i + 10, -1) for i in range(n)], lambda value: value < 0)
    seen: dict[int, list[int]] = {i: [] for i in range(n)}
    while merged.is_open:
        index, value = await merged.next()
        seen[index].append(value)
    assert seen == {i: [i, i + 10, -1] for i in range(n)}


async def test_a_source_that_waits_holds_up_nobody():
    gate = asyncio.Event()

    async def late() -> int:
        await gate.wait()
        return -1

    merged = FanIn([late, source(1, 2, -1)], lambda value: value < 0)
    assert [await merged.next() for _ in range(3)] == [(1, 1), (1, 2), (1, -1)]
    gate.set()
    assert await merged.next() == (0, -1)
    assert not merged.is_open


async def test_closing_cancels_what_waits():
    cancelled = asyncio.Event()

    async def forever() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return 0

    merged = FanIn([forever, source(1)], lambda value: value < 0)
    await merged.next()
    await merged.aclose()
    assert cancelled.is_set()
    assert not merged.is_open
