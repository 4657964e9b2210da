"""What reaches vLLM, what comes back, and what happens when it goes away or says something wrong."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput, EngineRequest, ThinkingBudget
from interlock.core.sampling import SamplingParams, TokenLimits
from interlock.errors import InterlockError
from interlock.remote.vllm import VllmEngine
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from tests.fakes.vllm import FakeVllm

TOKENIZER = byte_tokenizer()
STOP_IDS = TOKENIZER.vocabulary.stop_ids
THINK, UNTHINK = TOKENIZER.special_tokens["<think>"], TOKENIZER.special_tokens["</think>"]
LIMIT_S = 30.0


def lark(text: str) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar=text, key=text)


def request(prompt: str = "hi", **fields: Any) -> EngineRequest:
    base = EngineRequest(
        request_id="r",
        prompt_ids=tuple(TOKENIZER.encode(prompt)),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=100,
        stop_ids=STOP_IDS,
    )
    return replace(base, **fields)


async def collect(engine: VllmEngine, asked: EngineRequest) -> list[EngineOutput]:
    async with asyncio.timeout(LIMIT_S):
        return [output async for output in engine.generate(asked)]


def text(outputs: list[EngineOutput]) -> str:
    return TOKENIZER.decode([token_id for output in outputs for token_id in output.token_ids])


def failure(outputs: list[EngineOutput]) -> str:
    assert outputs[-1].failure is not None
    return outputs[-1].failure.code


async def test_the_prompt_goes_as_ids_and_every_parameter_is_said(make_server, make_engine):
    server = await make_server("ok")
    engine = await make_engine(server)
    sampling = SamplingParams(temperature=0.5, top_p=0.9, top_k=5, seed=2**63 + 3, logit_bias=((5, -2.0),))
    limits = TokenLimits(min_tokens=1, allowed=(111, 107))
    outputs = await collect(engine, request(sampling=sampling, limits=limits, max_tokens=7))
    (body,) = server.requests
    assert body["token_ids"] == TOKENIZER.encode("hi")
    said = body["sampling_params"]
    assert (said["seed"], said["logit_bias"], said["max_tokens"], said["top_k"]) == (3, {"5": -2.0}, 7, 5)
    assert (said["min_tokens"], said["allowed_token_ids"]) == (1, [111, 107])
    assert said["stop_token_ids"] == list(STOP_IDS)
    assert "structured_outputs" not in said
    assert (text(outputs), outputs[-1].finish_reason, outputs[-1].num_cached_tokens) == ("ok", "stop", 1)


async def test_a_server_without_the_token_endpoint_is_asked_for_completions(make_server, make_engine):
    server = await make_server("ok", endpoint="/v1/completions")
    engine = await make_engine(server)
    assert text(await collect(engine, request())) == "ok"
    assert server.requests[0]["prompt"] == TOKENIZER.encode("hi")
    assert server.requests[0]["return_token_ids"] is True


async def test_a_constraint_is_tried_once_and_a_refusal_is_kept(make_server, make_engine):
    server = await make_server("ab", refuse=lambda grammar: "too odd" if "odd" in grammar else None)
    engine = await make_engine(server)
    good, odd = lark('start: "ab"'), lark('start: "odd"')
    for _ in range(2):
        await engine.prepare(good)
        with pytest.raises(InterlockError, match="vLLM refuses the request: too odd") as refused:
            await engine.prepare(odd)
        assert refused.value.code == "invalid_grammar"
    assert len(server.requests) == 2
    grammar = server.requests[0]["sampling_params"]["structured_outputs"]["grammar"]
    assert grammar == '%llguidance {}\nstart: "ab"'


async def test_a_vllm_with_another_grammar_engine_is_found_out_before_the_stream(make_server, make_engine):
    engine = await make_engine(await make_server(""))  # an answer that ends at once, without an error
    with pytest.raises(InterlockError, match="does not take this constraint") as refused:
        await engine.prepare(lark('start: "ab"'))
    assert refused.value.hint is not None
    assert "guidance" in refused.value.hint


async def test_what_breaks_the_constraint_is_not_passed_on(make_server, make_engine):
    engine = await make_engine(await make_server("abX"))
    outputs = await collect(engine, request(constraint=lark('start: "abc"')))
    assert (text(outputs), failure(outputs)) == ("ab", "matcher_failed")


async def test_an_end_where_the_constraint_may_not_end_is_an_error(make_server, make_engine):
    engine = await make_engine(await make_server("ab"))  # as vLLM does where its matcher gives up
    outputs = await collect(engine, request(constraint=lark('start: "abc"')))
    assert failure(outputs) == "matcher_failed"


async def test_a_cut_answer_says_whether_it_may_end_there(make_server, make_engine):
    engine = await make_engine(await make_server("aaaa"))
    for grammar, accepting in (("start: /a+/", True), ("start: /a{9}/", False)):
        last = (await collect(engine, request(constraint=lark(grammar), max_tokens=2)))[-1]
        assert (last.finish_reason, last.is_accepting) == ("length", accepting)


async def test_a_server_lost_before_the_first_token_is_replaced(make_server, make_engine):
    broken, whole = await make_server("one", break_after=[0]), await make_server("two")
    engine = await make_engine(broken, whole)
    for _ in range(2):
        assert text(await collect(engine, request())) in ("one", "two")
    assert len(broken.requests) + len(whole.requests) == 3
    assert (await engine.stats()).restarts == 1


async def test_a_server_lost_later_ends_the_request_with_an_error(make_server, make_engine):
    engine = await make_engine(await make_server("long answer", break_after=[4]), await make_server("other"))
    outputs = await collect(engine, request())
    if text(outputs) == "other":  # the other one was chosen first
        outputs = await collect(engine, request())
    assert (text(outputs), failure(outputs)) == ("long", "worker_died")


async def test_a_server_that_comes_back_is_waited_for(make_server, make_engine):
    server = await make_server("back")
    engine = await make_engine(server)
    await server.stop()
    lost, told = asyncio.Event(), engine._replicas._on_change
    engine._replicas._on_change = lambda: (told(), lost.set())
    asking = asyncio.create_task(collect(engine, request()))
    await asyncio.wait_for(lost.wait(), LIMIT_S)
    assert engine.phase == "restarting"
    await server.start()
    assert text(await asking) == "back"
    assert engine.phase == "ready"


async def test_a_deadline_and_an_abort_close_the_connection(make_server, make_engine):
    never = asyncio.Event()
    server: FakeVllm = await make_server("x", wait=never.wait)
    engine = await make_engine(server)
    async with asyncio.timeout(LIMIT_S):
        asking = asyncio.create_task(collect(engine, request(deadline_s=2.0)))
        await server.until(lambda one: one.num_running == 1)
        assert failure(await asking) == "request_timeout"
        await server.until(lambda one: one.num_running == 0 and one.num_aborted == 1)
        asking = asyncio.create_task(collect(engine, request()))
        await server.until(lambda one: one.num_running == 1)
        await engine.abort("r")
        assert (await asking)[-1].finish_reason == "abort"
        await server.until(lambda one: one.num_running == 0 and one.num_aborted == 2)


async def test_thinking_is_closed_at_its_budget_and_the_answer_goes_on(make_server, make_engine):
    def say(body: dict[str, Any]) -> list[int]:
        before = TOKENIZER.decode(body["token_ids"])
        return TOKENIZER.encode("endless thoughts" if before.endswith("<think>") else "yes<|im_end|>")

    server = await make_server(say)
    engine = await make_engine(server)
    rest = lark('start: "yes" | "no"')
    asked = request(
        "hi<think>",
        constraint=lark(f'start: /(?s:[a-z ]*)/ <[{UNTHINK}]> ("yes" | "no")'),
        thinking=ThinkingBudget(max_tokens=7, close_ids=(UNTHINK,), rest=rest),
        max_tokens=20,
    )
    outputs = await collect(engine, asked)
    assert text(outputs) == "endless</think>yes"
    assert (outputs[-1].finish_reason, outputs[-1].is_accepting) == ("stop", True)
    first, second = server.requests
    assert second["token_ids"] == [*first["token_ids"], *TOKENIZER.encode("endless</think>")]
    assert second["sampling_params"]["max_tokens"] == 20 - 8
    assert '"yes" | "no"' in second["sampling_params"]["structured_outputs"]["grammar"]


async def test_thinking_that_ends_by_itself_takes_one_request(make_server, make_engine):
    server = await make_server("hm</think>free text")
    engine = await make_engine(server)
    budget = ThinkingBudget(max_tokens=50, close_ids=(UNTHINK,))
    assert text(await collect(engine, request(thinking=budget))) == "hm</think>free text"
    assert len(server.requests) == 1
    budget = ThinkingBudget(max_tokens=0, close_ids=(UNTHINK,))
    outputs = await collect(engine, request(thinking=budget, max_tokens=1))
    assert (text(outputs), outputs[-1].finish_reason, len(server.requests)) == ("</think>", "length", 1)


async def test_what_it_does_not_have_is_refused(make_server, make_engine):
    engine = await make_engine(await make_server("x"))
    with pytest.raises(InterlockError, match="trace cannot be had"):
        engine.check(request(trace=True))
    with pytest.raises(InterlockError, match="has no guards"):
        await engine.prepare(replace(lark('start: "a"'), guards="{}"))


async def test_another_models_tokenizer_is_noticed_at_the_start(make_server, make_engine):
    server = await make_server("x")
    server.tokenizer = SimpleNamespace(encode=lambda _text: [1])
    with pytest.raises(InterlockError, match="is not the one of the model"):
        await make_engine(server)


async def test_a_start_without_a_server_or_without_the_model_says_so(make_server, make_engine):
    server = await make_server("x")
    with pytest.raises(InterlockError, match="does not serve other; it has m") as refused:
        await make_engine(server, model="other")
    assert refused.value.code == "model_not_found"
    await server.stop()
    with pytest.raises(InterlockError, match="no vLLM answered within") as refused:
        await make_engine(server, start_s=0.05)
    assert refused.value.code == "not_ready"


async def test_a_verifier_that_dies_is_replaced_and_follows_anew(make_server, make_engine):
    step = asyncio.Semaphore(2)
    engine = await make_engine(await make_server("abcd", wait=step.acquire))
    constraint = lark('start: "abcd"')
    stream = engine.generate(request(constraint=constraint))
    outputs = [await anext(stream), await anext(stream)]
    child = engine._verifier._child
    assert child is not None
    await child.kill()
    for _ in range(10):
        step.release()
    async with asyncio.timeout(LIMIT_S):
        outputs += [output async for output in stream]
    assert (text(outputs), outputs[-1].finish_reason) == ("abcd", "stop")
