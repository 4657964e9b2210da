"""A prompt that is given as it is: no template, no parsing, and a constraint from the first token."""

from __future__ import annotations

import pytest

from interlock.core.constraint import Choice
from interlock.core.events import Finished
from interlock.core.output_format import ChoiceFormat
from interlock.core.request import GenerateRequest
from interlock.errors import InterlockError

MARKED = '<think>x</think><tool_call>{"name": "f"}</tool_call>'


def text(events) -> str:
    return "".join(event.text for event in events[:-1])


async def test_text_is_encoded_and_ids_are_taken_as_they_are(world):
    made = await world("y")
    for prompt, ids in [("a<|im_end|>", (97, made.tokenizer.special_tokens["<|im_end|>"])), ((5, 6), (5, 6))]:
        await made.answer(messages=(), prompt=prompt)
        assert made.engine.requests[-1].prompt_ids == ids


async def test_the_answer_is_text_whatever_it_looks_like(world):
    made = await world(MARKED)
    events = await made.answer(messages=(), prompt="a")
    control = [
        spelling
        for spelling, token_id in made.tokenizer.special_tokens.items()
        if token_id in made.tokenizer.vocabulary.control_ids
    ]
    expected = MARKED
    for spelling in control:
        expected = expected.replace(spelling, "")
    assert text(events) == expected
    assert isinstance(events[-1], Finished)


async def test_a_constraint_is_the_whole_answer(world):
    made = await world("yes")
    await made.answer(messages=(), prompt="a", output_format=ChoiceFormat(choices=("yes", "no")))
    assert isinstance(made.pool.specs[-1].root, Choice)


async def test_stop_strings_hold(world):
    made = await world("one STOP two")
    events = await made.answer(messages=(), prompt="a", stop=(" STOP",))
    assert (text(events), events[-1].stop_string) == ("one", " STOP")


@pytest.mark.parametrize("prompt", ["", (), (10**6,), (-1,), "\ud800"])
async def test_a_prompt_that_is_none_is_refused(world, prompt):
    made = await world("")
    with pytest.raises(InterlockError) as caught:
        await made.begin(messages=(), prompt=prompt)
    assert (caught.value.code, caught.value.param) == ("invalid_value", "prompt")


async def test_a_look_at_a_request_runs_nothing(world):
    made = await world("")
    resolved = await made.service.resolve(GenerateRequest(request_id="r", model="m", prompt="abc"))
    assert resolved.engine_request.prompt_ids == (97, 98, 99)
    assert made.engine.requests == []
    with pytest.raises(InterlockError, match="not served"):
        await made.service.resolve(GenerateRequest(request_id="r", model="other", prompt="abc"))
