from __future__ import annotations

from typing import Any

import pytest

from interlock.core.engine import EngineOutput
from interlock.core.trace import TokenTrace


def traces(outputs: list[EngineOutput]) -> list[TokenTrace]:
    return [trace for output in outputs for trace in output.trace]


def test_a_traced_text_is_that_of_the_untraced_request_with_one_trace_a_token(bench: Any, says: Any) -> None:
    world = bench(logits=says("axb"))
    plain, traced = (world.submit(">", answers=["aab", "aac"], trace=trace) for trace in (False, True))
    world.run()
    assert world.text(plain) == world.text(traced)
    assert [one.token_id for one in traces(world.outputs[traced])] == world.ids(traced)
    assert traces(world.outputs[plain]) == []


def test_a_trace_says_what_the_model_wanted_and_what_the_mask_took(bench: Any, says: Any) -> None:
    world = bench(logits=says("x"))
    name = world.submit(">", answers=["ab", "ac"], trace=True)
    world.run()
    first, second = traces(world.outputs[name])
    assert (first.source, first.num_allowed) == ("forced", 1)
    assert (second.source, second.num_allowed) == ("sampled", 2)
    assert first.wanted == second.wanted == ord("x")
    assert first.wanted_probability > first.probability
    assert first.removed == pytest.approx(1.0 - first.probability)
    assert {token_id for token_id, _ in second.allowed} == {ord("b"), ord("c")}
    assert second.allowed[0][1] >= second.allowed[1][1]
    assert second.removed == pytest.approx(1.0 - sum(probability for _, probability in second.allowed))


def test_a_free_request_has_nothing_removed(bench: Any, says: Any) -> None:
    world = bench(logits=says("x"))
    name = world.submit(">", max_tokens=2, trace=True)
    world.run()
    assert [(one.source, one.removed, one.wanted) for one in traces(world.outputs[name])] == [
        ("sampled", 0.0, ord("x"))
    ] * 2


def test_timings_follow_the_clock_and_count_what_was_forced(bench: Any, says: Any) -> None:
    world = bench(logits=says("x"), slots=1)
    first = world.submit(">", max_tokens=2)
    name = world.submit(">", answers=["abcd", "aefg"])
    world.wait_for_grammar()
    while world.finish(name) is None:
        world.now += 1.0
        world.step()
    timings = world.outputs[name][-1].timings
    assert timings is not None
    assert timings.queue_s == 3.0  # two steps of the other one
    assert timings.num_forced == 3
    assert world.outputs[first][0].timings is None
