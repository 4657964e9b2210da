"""Modules run as processes of their own, spoken to over their pipes."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from interlock.child import Child, Frames


class Said(msgspec.Struct, frozen=True, tag=True):
    text: str


async def test_an_end_before_the_answer_leaves_nothing_running():
    child = Child(Frames[Said](Said))
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await child.start("this", Said("hello"), timeout_s=60)  # prints its text, which is no message, and ends
    assert child.pid is None
    assert await child.ended() == 0


async def test_one_that_does_not_answer_is_ended():
    child = Child(Frames[Said](Said))
    with pytest.raises(TimeoutError):
        await child.start("code", Said("hello"), timeout_s=0.0)
    assert child.pid is None
    assert await child.ended() < 0
    await child.kill()
