"""The life of a request: refused before the first byte, or answered with one end, and always freed."""

from __future__ import annotations

import asyncio
import gc

import pytest

from interlock.core.engine import EngineOutput
from interlock.core.events import Failed, Finished, TextDelta, ToolCallArguments, ToolCallEnd, ToolCallStart
from interlock.core.messages import Message
from interlock.core.output_format import ChoiceFormat, JsonObjectFormat
from interlock.core.tools import Tool, ToolChoice
from interlock.errors import InterlockError

F = Tool(name="f")
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


async def refusal(awaitable) -> InterlockError:
    with pytest.raises(InterlockError) as caught:
        await awaitable
    return caught.value


class Gate:
    """A script that plays its tokens, then waits until the gate is opened."""

    def __init__(self, tokens: bytes = b"") -> None:
        self.tokens = tokens
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, request):
        for token_id in self.tokens:
            yield token_id
        self.reached.set()
        await self.opened.wait()


def metric(world, name: str, **labels: str) -> float:
    return world.metrics.registry.get_sample_value(name, labels) or 0.0


async def test_an_answer_is_text_and_one_end(world):
    made = await world("hello")
    events = await made.answer()
    assert "".join(event.text for event in events[:-1]) == "hello"
    assert events[-1].reason == "stop"
    assert events[-1].usage.completion_tokens == 5
    assert made.num_in_flight == 0


async def test_a_call_is_read_by_the_family(world):
    made = await world(CALL)
    generation = await made.begin(tools=(F,))
    kinds = [type(event) for event in [event async for event in generation]]
    assert kinds[0] is ToolCallStart
    assert set(kinds[1:-2]) == {ToolCallArguments}
    assert kinds[-2:] == [ToolCallEnd, Finished]
    assert generation.tools.tool_choice.mode == "auto"


async def test_a_constraint_is_lowered_and_prepared_before_the_engine_runs(world):
    made = await world("a")
    generation = await made.begin(output_format=ChoiceFormat(choices=("a",)))
    assert [constraint.key for constraint in made.engine.prepared] == [made.pool.specs[0].digest()]
    assert made.engine.requests == []
    assert "format is ignored" in generation.notes
    assert [type(event) async for event in generation] == [TextDelta, Finished]
    assert made.engine.requests[0].constraint == made.engine.prepared[0]
    assert metric(made, "interlock_constrained_requests_total", kind="choice") == 1


async def test_a_free_request_meets_no_compiler(world):
    made = await world("a")
    await made.answer(tools=(F,))
    assert (made.pool.specs, made.engine.prepared) == ([], [])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"model": "other"}, "model_not_found"),
        ({"messages": ()}, "invalid_messages"),
        ({"tools": ()}, "invalid_tools"),
        ({"tool_choice": ToolChoice(mode="required")}, "invalid_tools"),
        ({"messages": (Message(role="user", content="x" * 9000),)}, "context_length_exceeded"),
        ({"messages": (Message(role="user", content="x" * 90_000),)}, "context_length_exceeded"),
    ],
)
async def test_a_wrong_request_is_refused_at_once_and_leaves_nothing(world, fields, code):
    made = await world("a")
    assert (await refusal(made.begin(**fields))).code == code
    assert made.num_in_flight == 0
    assert made.engine.requests == []


async def test_a_refused_constraint_is_refused_before_the_first_byte(world):
    made = await world("a")
    made.pool.refusal = InterlockError("invalid_schema", "no")
    assert await refusal(made.begin(output_format=JsonObjectFormat())) is made.pool.refusal
    assert made.num_in_flight == 0


async def test_what_only_the_engine_refuses_is_refused_before_the_first_byte_too(world):
    error = InterlockError("constraint_too_complex", "no")
    made = await world("a", engine={"refuse": lambda constraint: error})
    assert await refusal(made.begin(output_format=JsonObjectFormat())) is error
    assert made.num_in_flight == 0


async def test_above_the_limit_a_request_is_refused_until_another_has_ended(world):
    made = await world("a", max_concurrent=2)
    first, second = await made.begin(), await made.begin()
    assert (await refusal(made.begin())).code == "overloaded"
    await first.aclose()
    third = await made.begin()
    assert (await refusal(made.begin())).code == "overloaded"
    assert metric(made, "interlock_requests_in_flight") == 2
    for generation in (second, third):
        await generation.aclose()
        await generation.aclose()
    assert made.num_in_flight == 0


async def test_a_generation_that_is_never_read_and_never_closed_is_freed_with_the_object(world):
    made = await world("a")
    generation = await made.begin()
    assert made.num_in_flight == 1
    del generation
    gc.collect()
    await asyncio.sleep(0)
    assert made.num_in_flight == 0


async def test_closing_early_aborts_the_engines_request(world):
    made = await world(Gate(b"ab"))
    generation = await made.begin()
    assert await anext(generation) == TextDelta(text="a")
    await generation.aclose()
    assert made.engine.aborted == ["r0"]
    assert made.num_in_flight == 0
    assert [event async for event in generation] == []


async def test_a_cancelled_reader_can_be_closed(world):
    made = await world(gate := Gate())
    generation = await made.begin()
    reader = asyncio.ensure_future(anext(generation))
    await gate.reached.wait()
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    await generation.aclose()
    assert made.engine.aborted == ["r0"]
    assert made.num_in_flight == 0


async def test_closing_while_another_task_reads_ends_its_stream(world):
    made = await world(gate := Gate())
    generation = await made.begin()
    reader = asyncio.ensure_future(anext(generation))
    await gate.reached.wait()
    await generation.aclose()
    end = await reader
    assert isinstance(end, Finished)
    assert end.reason == "abort"
    assert made.num_in_flight == 0


async def test_a_request_cancelled_while_it_waits_for_the_compiler_is_freed(world):
    made = await world("a")
    made.pool.gate = asyncio.Event()
    starting = asyncio.ensure_future(made.begin(output_format=JsonObjectFormat()))
    await made.pool.waiting.wait()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert made.num_in_flight == 0
    assert made.engine.requests == []


async def test_preparation_has_a_time_limit(world):
    made = await world("a")
    made.pool.gate = asyncio.Event()
    error = await refusal(made.begin(output_format=JsonObjectFormat(), timeout_s=0.01))
    assert error.code == "request_timeout"
    assert made.num_in_flight == 0


async def test_the_engine_gets_what_is_left_of_the_time_limit(world):
    made = await world("a", request_timeout_s=50)
    await made.answer()
    await made.answer(timeout_s=5.0)
    await made.answer(timeout_s=500.0)
    limits = [request.deadline_s for request in made.engine.requests]
    assert all(
        low < limit <= high for limit, (low, high) in zip(limits, [(49, 50), (4, 5), (49, 50)], strict=True)
    )


async def test_an_engine_that_is_stuck_past_its_deadline_fails_the_request(world, monkeypatch):
    monkeypatch.setattr("interlock.serving.generation._GRACE_S", 0.0)
    made = await world(Gate())
    events = await made.answer(timeout_s=0.02)
    assert [event.error.code for event in events] == ["request_timeout"]
    assert made.num_in_flight == 0


async def test_a_dead_worker_fails_the_stream_and_the_next_request_works(world):
    answers = [[*b"ab", InterlockError("worker_died", "gone")], [*b"ok"]]
    made = await world(lambda request: answers.pop(0))
    events = await made.answer()
    assert isinstance(events[-1], Failed)
    assert events[-1].error.code == "worker_died"
    assert (await made.answer())[-1].reason == "stop"
    assert made.num_in_flight == 0


async def test_what_breaks_in_one_stream_ends_that_stream_only(world, caplog):
    def script(request):
        yield ord("a")
        raise RuntimeError("boom")

    made = await world(script)
    events = await made.answer()
    assert events[-1].error.code == "internal_error"
    assert "boom" not in events[-1].error.message
    assert made.num_in_flight == 0
    assert "boom" in caplog.text


async def test_an_engine_that_ends_without_a_reason_is_an_error(world, monkeypatch):
    made = await world("a")

    async def generate(request):
        yield EngineOutput(request_id=request.request_id, token_ids=(ord("a"),))

    monkeypatch.setattr(made.engine, "generate", generate)
    assert [type(event) for event in await made.answer()] == [TextDelta, Failed]


async def test_invalid_model_output_fails_the_stream_and_aborts_the_engine(world):
    made = await world('<tool_call>\n{"name": "f", "arguments": {"a": nonsense and much more text')
    events = await made.answer(tools=(F,))
    assert events[-1].error.code == "invalid_model_output"
    assert made.engine.aborted == ["r0"]


async def test_a_stop_string_aborts_the_engine(world):
    made = await world("one STOP two")
    events = await made.answer(stop=("STOP",))
    assert "".join(event.text for event in events[:-1]) == "one "
    assert events[-1].reason == "stop"
    assert made.engine.aborted == ["r0"]


async def test_calls_after_the_first_are_not_generated_without_parallel_calls(world):
    made = await world(f"{CALL}\n{CALL}")
    events = await made.answer(tools=(F,), parallel_tool_calls=False)
    assert sum(isinstance(event, ToolCallStart) for event in events) == 1
    assert events[-1].reason == "tool_calls"
    assert made.engine.aborted == ["r0"]


async def test_tool_choice_none_shows_no_call(world):
    made = await world("Well. " + CALL)
    events = await made.answer(tools=(F,), tool_choice=ToolChoice(mode="none"))
    assert {type(event) for event in events} == {TextDelta, Finished}
    assert events[-1].reason == "stop"


async def test_a_call_cut_by_max_tokens_is_not_whole_at_any_length(world):
    made = await world(CALL)
    for max_tokens in range(1, len(made.tokenizer.encode(CALL)) + 1):
        events = await made.answer(tools=(F,), max_tokens=max_tokens)
        assert events[-1].reason == "length"
    assert not any(isinstance(event, ToolCallEnd) for event in events[:-2])


async def test_a_control_token_in_the_output_is_not_shown(world):
    made = await world("a<|im_start|>b")
    assert "".join(event.text for event in (await made.answer())[:-1]) == "ab"


async def test_concurrent_answers_do_not_mix(world):
    made = await world(lambda request: [*request.prompt_ids[:-1], 257])
    texts = [f"text {number}" for number in range(20)]
    answers = await asyncio.gather(
        *(made.answer(request_id=text, messages=(Message(role="user", content=text),)) for text in texts)
    )
    assert ["".join(event.text for event in events[:-1]) for events in answers] == texts


async def test_tokens_and_times_are_counted(world):
    made = await world("abc")
    await made.answer()
    assert metric(made, "interlock_completion_tokens_total") == 3
    assert metric(made, "interlock_prompt_tokens_total") == 3
    assert metric(made, "interlock_time_to_first_token_seconds_count") == 1
    assert metric(made, "interlock_request_seconds_count") == 1


async def test_before_the_engine_is_ready_requests_are_told_the_phase(world):
    made = await world("a", start=False)
    made.engine._phase = "loading_model"
    error = await refusal(made.begin())
    assert (error.code, error.message) == ("not_ready", "the model is not ready: loading model")
    assert (await refusal(made.begin(model="other"))).code == "model_not_found"


async def test_while_the_worker_restarts_requests_wait_in_the_engine(world):
    made = await world("a")
    made.engine._phase = "restarting"
    generation = await made.begin()
    made.engine._phase = "ready"
    assert [type(event) async for event in generation] == [TextDelta, Finished]


async def test_a_worker_that_is_not_restarted_any_more_is_not_ready(world):
    made = await world("a")
    made.engine._phase = "failed"
    assert (await refusal(made.begin())).code == "not_ready"


async def test_stopping_refuses_new_requests_and_waits_for_running_ones(world):
    made = await world(gate := Gate(b"a"), drain_s=30.0)
    generation = await made.begin()
    assert await anext(generation) == TextDelta(text="a")
    stopping = asyncio.ensure_future(made.service.lifecycle.stop())
    await asyncio.sleep(0)
    assert made.service.lifecycle.phase == "stopping"
    assert (await refusal(made.begin())).code == "shutting_down"
    assert made.pool.running
    gate.opened.set()
    assert [event.reason async for event in generation] == ["stop"]
    await stopping
    assert not made.pool.running
    assert made.engine.phase == "stopping"


async def test_stopping_without_requests_waits_for_nothing(world, caplog):
    made = await world("a", drain_s=0.0)
    await made.service.lifecycle.stop()
    assert "unfinished" not in caplog.text


async def test_what_is_not_done_after_the_drain_time_ends_with_an_error(world):
    made = await world(gate := Gate(), drain_s=0.01)
    reader = asyncio.ensure_future(made.answer())
    await gate.reached.wait()
    await made.service.lifecycle.stop()
    assert [event.error.code for event in await reader] == ["shutting_down"]


async def test_an_engine_that_cannot_start_leaves_nothing_running(world, monkeypatch):
    made = await world("a")

    async def start() -> None:
        raise InterlockError("internal_error", "no model")

    monkeypatch.setattr(made.engine, "start", start)
    assert (await refusal(made.service.lifecycle.start())).message == "no model"
    assert not made.pool.running
