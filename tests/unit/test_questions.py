"""Answers find who asked, or nobody."""

from __future__ import annotations

import asyncio

import pytest

from interlock.questions import Questions


async def test_answers_come_in_any_order():
    questions = Questions[str]()
    (first, one), (second, two) = questions.ask(), questions.ask()
    questions.answer(second, "two")
    questions.answer(first, "one")
    assert await asyncio.gather(one, two) == ["one", "two"]


async def test_an_answer_that_nobody_waits_for_is_dropped():
    """Also where who asked has left in this very turn of the loop, and where it comes twice."""
    questions = Questions[int]()
    ticket, answer = questions.ask()
    answer.cancel()
    questions.answer(ticket, 1)
    questions.answer(99, 1)
    other, waited = questions.ask()
    questions.answer(other, 2)
    questions.answer(other, 3)
    assert await waited == 2
    await asyncio.sleep(0)
    assert questions._open == {}


async def test_what_is_still_owed_fails_together():
    questions = Questions[int]()
    ticket, answered = questions.ask()
    questions.answer(ticket, 1)
    _, owed = questions.ask()
    questions.fail_all(ConnectionError("gone"))
    assert await answered == 1
    with pytest.raises(ConnectionError, match="gone"):
        await owed
