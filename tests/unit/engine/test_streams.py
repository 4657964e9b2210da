from __future__ import annotations

import pytest

from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine import streams as module
from interlock.engine.streams import Stream, Streams
from interlock.errors import InterlockError


def open_stream(streams: Streams, name: str = "r", deadline_s: float | None = None) -> Stream:
    request = EngineRequest(
        request_id=name, prompt_ids=(1, 2), sampling=SamplingParams(), max_tokens=9, deadline_s=deadline_s
    )
    return streams.open(request)


def output(*ids: int, name: str = "r", end: bool = False) -> EngineOutput:
    return EngineOutput(request_id=name, token_ids=ids, finish_reason="stop" if end else None)


def test_what_was_delivered_is_kept_for_the_next_worker():
    streams = Streams()
    stream = open_stream(streams)
    streams.deliver([output(5, 6), output(7), output(8, name="nobody")])
    assert stream.rest_of_request().resume_ids == (5, 6, 7)
    assert stream.rest_of_request().deadline_s is None


def test_time_that_has_passed_counts():
    streams = Streams()
    deadline_s = open_stream(streams, deadline_s=50.0).rest_of_request().deadline_s
    assert deadline_s is not None
    assert 0 < deadline_s <= 50.0
    with pytest.raises(InterlockError) as late:
        open_stream(streams, "late", deadline_s=0.0).rest_of_request()
    assert late.value.code == "request_timeout"


def test_a_reader_that_lags_is_reported_once_until_it_has_caught_up():
    streams = Streams()
    stream = open_stream(streams)
    for _ in range(module._MOST_OUTPUTS - 1):
        assert streams.deliver([output(1)]) == []
    assert streams.deliver([output(1)]) == [stream]
    assert streams.deliver([output(1)]) == []
    while not stream.has_caught_up:
        stream.queue.get_nowait()
    assert stream.queue.qsize() == module._FEW_OUTPUTS
    stream.paused = False
    assert not stream.has_caught_up


def test_an_end_closes_and_is_delivered_once():
    streams = Streams()
    stream = open_stream(streams)
    streams.deliver([output(1, end=True)])
    streams.end(stream, "abort")
    streams.deliver([output(2)])
    assert stream.closed
    assert stream.queue.qsize() == 1
    assert not open_stream(streams).closed  # the id is free again


def test_what_never_had_a_worker_is_not_failed_with_the_rest():
    streams = Streams()
    started, waiting = open_stream(streams, "started"), open_stream(streams, "waiting")
    interrupted = open_stream(streams, "interrupted")
    started.submitted, interrupted.blame = True, 2
    streams.fail_started(InterlockError("worker_died", "m"))
    assert (started.closed, interrupted.closed, waiting.closed) == (True, True, False)
