"""The compile pool with real helper processes: hostile input ends in bounded time, and nothing else suffers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio

from interlock.compiling.pool import CompilePool
from interlock.config import CompileConfig
from interlock.core.constraint import (
    Alternative,
    Choice,
    ConstraintSpec,
    FreeText,
    Grammar,
    JsonValue,
    Lowering,
    Marker,
    Node,
    Regex,
    Sequence,
    Text,
)
from interlock.errors import InterlockError
from interlock.metrics import Metrics

SPECIAL_TOKENS = {"<tool_call>": 151_657, "</think>": 151_668, "[TOOL]": 5}
BOUND_S = 15.0  # four times the processor time of a job, and starting a helper
TIMEOUT_S = 3.0

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[CompilePool]:
    pool = CompilePool(CompileConfig(timeout_s=TIMEOUT_S), SPECIAL_TOKENS, Metrics())
    await pool.start()
    yield pool
    await pool.stop()


def spec(node: Node) -> ConstraintSpec:
    return ConstraintSpec(root=node)


async def refusal(pool: CompilePool, node: Node) -> InterlockError:
    with pytest.raises(InterlockError) as caught:
        await pool.lower(spec(node))
    return caught.value


def nested(depth: int) -> str:
    return '{"type": "array", "items": ' * depth + "{}" + "}" * depth


STRINGS = tuple(f"option number {index} of the list" for index in range(20_000))

REFUSED: dict[str, tuple[Node, str]] = {
    "nested 10,000 deep": (JsonValue(nested(10_000)), "invalid_schema"),
    "nested 100,000 deep": (JsonValue("[" * 100_000), "invalid_schema"),
    "5 MB": (JsonValue(json.dumps({"enum": ["x" * 5_000_000]})), "constraint_too_complex"),
    "self-reference without structure": (JsonValue('{"$ref": "#"}'), "invalid_schema"),
    "a circle of references": (
        JsonValue('{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}'),
        "invalid_schema",
    ),
    "combinations": (
        JsonValue(
            json.dumps(
                {
                    "allOf": [
                        {"anyOf": [{"required": [f"p{row}{column}"]} for column in range(6)]}
                        for row in range(12)
                    ]
                }
            )
        ),
        "invalid_schema",
    ),
    "a grammar that matches nothing": (Grammar('start: A\nA: "a" & "b"', "lark"), "invalid_grammar"),
    "malformed regex": (Regex("a(b"), "invalid_regex"),
    "look-ahead": (Regex("(?=a)b"), "invalid_regex"),
    "regex nested 50,000 deep": (Regex("(" * 50_000 + "a" + ")" * 50_000), "invalid_regex"),
    "pattern nested 50,000 deep": (
        JsonValue(json.dumps({"pattern": "(" * 50_000 + "a" + ")" * 50_000})),
        "invalid_schema",
    ),
    "alternatives nested 20,000 deep": (
        JsonValue('{"anyOf":[' * 20_000 + "{}" + "]}" * 20_000),
        "invalid_schema",
    ),
    "malformed lark": (Grammar("start: ((", "lark"), "invalid_grammar"),
    "malformed gbnf": (Grammar("root ::= (", "gbnf"), "invalid_grammar"),
    "gbnf nested 50,000 deep": (Grammar("root ::= " + "(" * 50_000, "gbnf"), "invalid_grammar"),
    "lark nested 50,000 deep": (Grammar("start: " + "(" * 50_000, "lark"), "invalid_grammar"),
}

BOUNDED: dict[str, Node] = {
    "regex bomb": Regex("((a{1,100}){1,100}){1,100}"),
    "regex bomb with overlap": Regex("(.*a.{50}){20}"),
    "regex bomb in words": Regex(r"(?:\S+\s+){0,99}\S+"),
    "regex in a schema": JsonValue(json.dumps({"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"})),
    "a long constant": JsonValue(json.dumps({"const": "x" * 1_500_000})),
    "20,000 properties": JsonValue(json.dumps({"properties": {f"p{i}": {} for i in range(20_000)}})),
    "ambiguous grammar": Grammar('start: start start | "a" | ""', "lark"),
    "doubling grammar": Grammar(
        "start: a0\n" + "\n".join(f'a{i}: a{i + 1} a{i + 1} | "x"' for i in range(40)) + '\na40: "y"', "lark"
    ),
}

ACCEPTED: dict[str, Node] = {
    "enum of 20,000": JsonValue(json.dumps({"enum": STRINGS})),
    "choice of 20,000": Choice(STRINGS),
    "recursion with structure": JsonValue('{"properties": {"next": {"$ref": "#"}}}'),
    "markers": Sequence(
        (FreeText(), Marker("</think>"), Alternative((Marker("<tool_call>"), Marker("[TOOL]"), Text("x"))))
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_bad_input_is_refused_in_bounded_time(pool: CompilePool, name: str) -> None:
    node, code = REFUSED[name]
    started = time.monotonic()
    error = await refusal(pool, node)
    assert (error.code, error.entry.status) == (code, 400)
    assert len(error.message) < 2_000
    assert time.monotonic() - started < BOUND_S


@pytest.mark.parametrize("name", BOUNDED)
async def test_costly_input_ends_in_bounded_time(pool: CompilePool, name: str) -> None:
    started = time.monotonic()
    (result,) = await asyncio.gather(pool.lower(spec(BOUNDED[name])), return_exceptions=True)
    assert isinstance(result, Lowering) or (isinstance(result, InterlockError) and result.entry.status == 400)
    assert time.monotonic() - started < BOUND_S


@pytest.mark.parametrize("name", ACCEPTED)
async def test_good_input_is_lowered(pool: CompilePool, name: str) -> None:
    lowered = (await pool.lower(spec(ACCEPTED[name]))).constraint
    assert lowered.provider == "llguidance"
    assert lowered.grammar


async def test_the_part_at_fault_is_named(pool: CompilePool) -> None:
    good = JsonValue('{"type": "integer"}', origin="tools[0].function.parameters", tool="good")
    bad = JsonValue(
        '{"properties": {"a": {"pattern": "(x)\\\\1"}}}',
        origin="tools[1].function.parameters",
        tool="bad",
    )
    error = await refusal(pool, Alternative((Sequence((Text("a"), good)), Sequence((Text("b"), bad)))))
    assert error.code == "invalid_schema"
    assert error.param == "tools[1].function.parameters"
    assert [(problem.pointer, problem.tool) for problem in error.problems] == [("/properties/a/pattern", "bad")]
    assert "start:" not in error.message


async def test_all_unsupported_keywords_come_back_across_the_process(pool: CompilePool) -> None:
    error = await refusal(pool, JsonValue('{"pattern": "(?<=x)y", "items": {"pattern": "(x)\\\\1"}}'))
    assert [(problem.keyword, problem.pointer) for problem in error.problems] == [
        ("pattern", "/pattern"),
        ("pattern", "/items/pattern"),
    ]


async def test_notes_come_back(pool: CompilePool) -> None:
    lowered = (await pool.lower(spec(JsonValue('{"type": "string", "format": "phone"}')))).constraint
    assert lowered.notes == ("/format: format 'phone' is not checked",)


async def test_equal_specs_share_a_job_and_its_result() -> None:
    metrics = Metrics()
    pool = CompilePool(CompileConfig(), {}, metrics)
    await pool.start()
    try:
        results = await asyncio.gather(*(pool.lower(spec(Text("shared"))) for _ in range(5)))
        assert all(result.constraint is results[0].constraint for result in results)
        again = await pool.lower(spec(Text("shared")))
        assert again.is_cached
        assert again.constraint is results[0].constraint
        assert not any(result.is_cached for result in results)
        for _ in range(2):
            assert (await refusal(pool, Regex("("))).code == "invalid_regex"
        counted = {
            result: metrics.registry.get_sample_value("interlock_constraint_lowering_total", {"result": result})
            for result in ("lowered", "refused", "cached")
        }
        assert counted == {"lowered": 1, "refused": 1, "cached": 2}
        assert metrics.registry.get_sample_value("interlock_constraint_lowering_seconds_count") == 2
    finally:
        await pool.stop()


async def test_a_cancelled_caller_does_not_stop_the_job_of_others(pool: CompilePool) -> None:
    node = Choice(tuple(f"cancelled {index}" for index in range(5_000)))
    first = asyncio.ensure_future(pool.lower(spec(node)))
    second = asyncio.ensure_future(pool.lower(spec(node)))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await second).constraint.grammar


async def test_a_job_that_nobody_waits_for_is_ended_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interlock.compiling.pool._ABANDONED_S", 0.0)
    pool = CompilePool(CompileConfig(timeout_s=1000.0), {})
    await pool.start()
    try:
        (pid,) = pool.helper_pids
        helper = psutil.Process(pid)
        callers = [asyncio.ensure_future(pool.lower(spec(BOUNDED["regex bomb"]))) for _ in range(2)]
        waits = asyncio.ensure_future(pool.lower(spec(Text("waits"))))
        await asyncio.sleep(0)
        callers[0].cancel()
        await asyncio.wait({callers[0]})
        assert helper.is_running()
        callers[1].cancel()
        await asyncio.to_thread(helper.wait, BOUND_S)  # its processor is idle again
        assert (await waits).constraint.grammar
        assert pid not in pool.helper_pids
        assert not pool._in_flight
    finally:
        await pool.stop()


async def test_who_asks_again_in_time_gets_the_result_of_an_abandoned_job(pool: CompilePool) -> None:
    node = Choice(tuple(f"asked twice {index}" for index in range(2_000)))
    first = asyncio.ensure_future(pool.lower(spec(node)))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    (job,) = pool._in_flight.values()
    again = asyncio.ensure_future(pool.lower(spec(node)))
    await asyncio.sleep(0)
    assert list(pool._in_flight.values()) == [job]
    assert (await again).constraint.grammar


async def test_a_job_past_its_time_is_killed_and_the_next_one_works() -> None:
    pool = CompilePool(CompileConfig(timeout_s=0.2), {})
    await pool.start()
    try:
        slow = JsonValue(json.dumps({"enum": [f"{number}: slow" for number in range(40_000)]}))
        error = await refusal(pool, slow)
        assert error.code == "constraint_too_complex"
        assert (
            error.message
            == "the constraint did not compile within 0.2 s (--compile-timeout-s raises the limit)"
        )
        assert (await pool.lower(spec(Text("next")))).constraint.grammar
        assert (await refusal(pool, slow)).message == error.message  # remembered
    finally:
        await pool.stop()


async def test_a_job_is_not_charged_for_time_in_which_it_did_not_run() -> None:
    pool = CompilePool(CompileConfig(timeout_s=1.0), {})
    await pool.start()
    try:
        (pid,) = pool.helper_pids
        os.kill(pid, signal.SIGSTOP)
        answer = asyncio.ensure_future(pool.lower(spec(Text("patience"))))
        await asyncio.wait({answer}, timeout=1.1)
        assert not answer.done()
        os.kill(pid, signal.SIGCONT)
        assert (await answer).constraint.grammar
    finally:
        await pool.stop()


async def test_a_helper_leaves_the_cores_to_the_model(pool: CompilePool) -> None:
    assert all(psutil.Process(pid).nice() > psutil.Process().nice() for pid in pool.helper_pids)


async def test_memory_is_bounded() -> None:
    pool = CompilePool(CompileConfig(memory_bytes=4_000_000), {})
    await pool.start()
    try:
        hungry = Choice(tuple(f"{index:050}" for index in range(30_000)))
        assert (await refusal(pool, hungry)).code == "constraint_too_complex"
        assert (await pool.lower(spec(Text("next")))).constraint.grammar
    finally:
        await pool.stop()


async def test_a_helper_that_died_while_idle_is_replaced() -> None:
    pool = CompilePool(CompileConfig(), {})
    await pool.start()
    try:
        (pid,) = pool.helper_pids
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(BOUND_S):
            while pid in pool.helper_pids:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert (await pool.lower(spec(Text("next")))).constraint.grammar
        assert pool.helper_pids not in ((), (pid,))
    finally:
        await pool.stop()


async def test_stop_ends_the_helpers_and_whoever_waits() -> None:
    pool = CompilePool(CompileConfig(), {})
    await pool.start()
    (pid,) = pool.helper_pids
    waiting = asyncio.ensure_future(pool.lower(spec(Choice(STRINGS))))
    await asyncio.sleep(0)
    await pool.stop()
    with pytest.raises(InterlockError) as caught:
        await waiting
    assert caught.value.code == "shutting_down"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(InterlockError, match="not running"):
        await pool.lower(spec(Text("late")))
    await pool.stop()


BEHIND = '{"type": "string", "pattern": "(?<=x)y"}'


async def test_a_report_is_made_by_a_helper(pool: CompilePool) -> None:
    value = JsonValue('{"$ref": "http://example.com/short"}')
    documents = {"http://example.com/short": '{"type": "string", "maxLength": 2}'}
    found = await pool.check(value, ['"ab"', '"abc"'], documents)
    assert [item["accepted"] for item in found["instances"]] == [True, False]
    assert found["instances"][1]["position"] == 3
    assert not (await pool.check(value))["compiled"]
    assert (await pool.lower(spec(value), documents)).constraint.grammar
    assert (await refusal(pool, value)).code == "invalid_schema"


async def test_documents_are_judged_by_a_helper(pool: CompilePool) -> None:
    assert await pool.validate([(BEHIND, '"xy"'), (BEHIND, '"y"')]) == (True, False)


async def test_a_validator_that_does_not_end_says_nothing(pool: CompilePool) -> None:
    bomb = json.dumps({"type": "string", "pattern": "^(a|a)*b$"})
    assert await pool.validate([(bomb, json.dumps("a" * 40))]) == (None,)
    assert await pool.validate([(BEHIND, '"xy"')]) == (True,)


async def test_all_schemas_are_refused_at_once(pool: CompilePool) -> None:
    tools = [JsonValue(BEHIND, tool=name, origin=name) for name in ("a", "b")]
    error = await refusal(pool, Alternative((*tools, JsonValue("{}", tool="c"))))
    assert [(item.tool, item.pointer) for item in error.problems] == [("a", "/pattern"), ("b", "/pattern")]
    assert "'b'" in error.message
    assert error.param == "a"


async def test_a_relaxed_schema_is_lowered_and_tells_what_is_left_out(pool: CompilePool) -> None:
    lowered = (await pool.lower(spec(JsonValue(BEHIND, relaxed=True, tool="t")))).constraint
    assert [(item.keyword, item.tool) for item in lowered.unenforced] == [("pattern", "t")]


async def test_the_servers_documents_are_known_to_every_job() -> None:
    known = CompilePool(CompileConfig(documents=(("http://example.com/x#", '{"type": "null"}'),)), {})
    await known.start()
    try:
        reference = '{"$ref": "http://example.com/x"}'
        assert (await known.lower(spec(JsonValue(reference)))).constraint.grammar
        assert await known.validate([(reference, "null"), (reference, "1")]) == (True, False)
    finally:
        await known.stop()
