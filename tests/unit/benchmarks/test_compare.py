"""The rounds of a comparison: who is asked what, and when it stops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.compare import harness
from benchmarks.compare.harness import Ask, Judged, compare, judge

CALL = Ask({}, {"type": "object", "required": ["city"]}, tool="weather")
DOCUMENT = Ask({}, {"type": "integer"})


class Answers:
    """Gives the same verdict to everything."""

    def __init__(self, verdict: str) -> None:
        self.verdict = verdict
        self.asked: list[tuple[int, int]] = []

    def answer(self, asks: list[Ask], concurrency: int) -> list[Judged]:
        self.asked.append((len(asks), concurrency))
        return [Judged(self.verdict, tokens=3, first_s=0.5) for _ in asks]


@pytest.mark.parametrize(("minutes", "rounds_done"), [("60", 2), ("0", 1)])
def test_every_concurrency_is_measured_once_whatever_the_time(
    minutes: str, rounds_done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(harness, "asks", lambda _tokens: [DOCUMENT, CALL, DOCUMENT, CALL])
    options = harness.parser("").parse_args(
        ["--concurrency", "1,4", "--minutes", minutes, "--every", "3", "--out", str(tmp_path / "out.json")]
    )
    ours, peer = Answers("valid"), Answers("wrong")
    compare("test", {"ours": ours, "peer": peer}, {"ours": "Q8_0", "peer": "Q8_0"}, options)
    document = json.loads((tmp_path / "out.json").read_text())
    assert ours.asked == peer.asked == [(1, 1), *[(2, 1), (2, 4)] * rounds_done]
    found = document["by_concurrency"]["4"]
    assert len(found["rounds"]) == rounds_done
    assert found["rounds"][0]["ours"]["share"] == {"schemas": {"valid": 1}, "calls": {"valid": 1}}
    assert found["rounds"][0]["peer"]["wrong"] == [0, 1]
    assert set(found["tokens_per_s_over_peer"]) == {"ours"}


def test_a_contestant_that_is_left_out_is_not_started():
    options = harness.parser("").parse_args(["--without", "ours, slow"])
    with harness.served({"ours, slow": ["no such program"]}, options) as contestants:
        assert contestants == {}


@pytest.mark.parametrize(
    ("ask", "finish_reason", "calls", "text", "verdict"),
    [
        (DOCUMENT, "stop", [], "3", "valid"),
        (DOCUMENT, "stop", [], '"3"', "wrong"),
        (DOCUMENT, "stop", [], "Three!", "wrong"),
        (DOCUMENT, "length", [], "3", "valid"),  # as one that was closed at its limit
        (DOCUMENT, "length", [], '"3', "cut"),
        (DOCUMENT, "stop", ["weather"], "3", "wrong"),
        (CALL, "length", [], "", "cut"),
        (CALL, "tool_calls", ["weather"], '{"city": 1}', "valid"),
        (CALL, "tool_calls", ["weather"], "{}", "wrong"),
        (CALL, "tool_calls", ["weather", "weather"], '{"city": 1}', "wrong"),
        (CALL, "stop", [], '{"city": 1}', "wrong"),
    ],
)
def test_verdicts(ask: Ask, finish_reason: str, calls: list[str], text: str, verdict: str):
    assert judge(ask, finish_reason, calls, text) == verdict
