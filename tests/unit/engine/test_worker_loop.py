from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.ipc.messages import (
    Abort,
    ClientMessage,
    Outputs,
    Prepare,
    Prepared,
    Shutdown,
    StatsAnswer,
    StatsQuery,
    Submit,
    WorkerMessage,
)
from interlock.engine.wakeup import Wakeup
from interlock.engine.worker_loop import WorkerLoop

Item = ClientMessage | Callable[[], Any] | frozenset[int] | None


class StubEndpoint:
    """Gives one item of ``script`` each time the loop asks for messages: a message, what to call, or a set of tickets
    that must have been answered before the script goes on."""

    def __init__(self, script: list[Item]) -> None:
        self._script = iter(script)
        self.sent: list[WorkerMessage] = []
        self.wakeup: int | None = None
        self._awaited: frozenset[int] = frozenset()
        self._deadline = 0.0

    def also_wait_for(self, file_descriptor: int) -> None:
        self.wakeup = file_descriptor

    def send(self, message: WorkerMessage) -> None:
        self.sent.append(message)

    def received(self) -> Iterator[ClientMessage]:
        if not self._awaited <= {message.ticket for message in self.sent if isinstance(message, Prepared)}:
            assert time.monotonic() < self._deadline, "not answered in time"
            return
        item = next(self._script, None)
        if isinstance(item, frozenset):
            self._awaited, self._deadline = item, time.monotonic() + 10
        elif callable(item):
            item()
        elif item is not None:
            yield item

    def wait(self, timeout_s: float | None) -> None:
        pass

    def outputs(self, request_id: str) -> list[EngineOutput]:
        return [
            output
            for message in self.sent
            if isinstance(message, Outputs)
            for output in message.outputs
            if output.request_id == request_id
        ]

    def end(self, request_id: str) -> str | None:
        last = self.outputs(request_id)[-1]
        return last.failure.code if last.failure else last.finish_reason


def submit(request_id: str, max_tokens: int = 3, **fields: Any) -> Submit:
    settings: dict[str, Any] = {"prompt_ids": (1, 2), "sampling": SamplingParams(temperature=0.0)} | fields
    return Submit(EngineRequest(request_id=request_id, max_tokens=max_tokens, **settings))


def run(bench: Any, script: list[Item]) -> StubEndpoint:
    endpoint = StubEndpoint(script)
    WorkerLoop(endpoint, bench.core, bench.compiler, Wakeup()).run()  # type: ignore[arg-type]
    return endpoint


def test_requests_run_until_the_shutdown(bench):
    endpoint = run(bench(), [submit("a"), submit("b", max_tokens=50), Shutdown(60.0)])
    assert (endpoint.end("a"), endpoint.end("b")) == ("length", "length")


def test_what_is_not_finished_when_the_drain_is_over_ends_with_shutting_down(bench):
    endpoint = run(bench(), [submit("a"), submit("b", max_tokens=200), Shutdown(0.0)])
    assert endpoint.end("b") == "shutting_down"


def test_a_request_after_the_shutdown_is_refused(bench):
    endpoint = run(bench(), [submit("a", max_tokens=20), Shutdown(60.0), submit("late")])
    assert (endpoint.end("a"), endpoint.end("late")) == ("length", "shutting_down")


def test_a_request_that_cannot_run_gets_its_error(bench):
    endpoint = run(bench(), [submit("a", prompt_ids=()), Shutdown(0.0)])
    assert endpoint.end("a") == "invalid_value"


def test_an_abort_ends_its_request(bench):
    endpoint = run(bench(), [submit("a", max_tokens=200), None, Abort(("a", "nobody")), Shutdown(60.0)])
    assert endpoint.end("a") == "abort"


def test_stats_and_prepare_are_answered_by_ticket(bench, make_constraint):
    b = bench()
    good, bad = make_constraint(["ab"]), make_constraint([])
    script = [StatsQuery(7), Prepare(8, good), Prepare(9, bad), frozenset({8, 9}), Shutdown(0.0)]
    endpoint = run(b, script)
    answers = {message.ticket: message for message in endpoint.sent if isinstance(message, Prepared)}
    assert answers[8] == Prepared(8)
    assert answers[9].code == "invalid_grammar"
    assert any(isinstance(message, StatsAnswer) and message.ticket == 7 for message in endpoint.sent)


def test_a_step_that_breaks_costs_its_requests_and_the_worker_goes_on(bench, monkeypatch):
    b = bench()
    with monkeypatch.context() as patch:
        script = [
            submit("a", max_tokens=99),
            lambda: patch.setattr(b.core._execution, "_rows", lambda _: 1 // 0),
            patch.undo,
            submit("b"),
            Shutdown(60.0),
        ]
        endpoint = run(b, script)
    assert (endpoint.end("a"), endpoint.end("b")) == ("internal_error", "length")


def test_a_core_that_cannot_recover_ends_the_loop(bench, monkeypatch):
    b = bench()
    monkeypatch.setattr(b.core, "step", lambda: 1 // 0)
    monkeypatch.setattr(b.core, "reset", lambda _: [].pop())
    with pytest.raises(IndexError):
        run(b, [submit("a")])
