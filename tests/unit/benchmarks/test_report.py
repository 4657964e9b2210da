"""Tables and plots of the comparisons with other servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare.report import plot, rows, table


def burst(tokens_per_s: float, **schemas: int) -> dict[str, Any]:
    share = {"schemas": schemas, "calls": {"valid": 4}}
    return {"tokens_per_s": tokens_per_s, "first_token_ms": 20.0, "share": share, "wrong": []}


DOCUMENT: dict[str, Any] = {
    "command": "python compare.py",
    "machine": {"cpu": "a CPU", "cores": 2, "load": 0.5},
    "peer": "peer",
    "precision": {"ours": "float32", "ours, small": "Q8_0", "peer": "float32"},
    "requests": 8,
    "tokens": 16,
    "threads": 1,
    "by_concurrency": {
        "4": {
            "rounds": [
                {"ours": burst(10, valid=4), "ours, small": burst(40, valid=4), "peer": burst(8, valid=3, wrong=1)},
                {"ours": burst(14, valid=4), "ours, small": burst(40, valid=4), "peer": burst(7, valid=2, refused=2)},
            ],
            "tokens_per_s_over_peer": {"ours": 1.625, "ours, small": 5.3},
        }
    },
}  # fmt: skip


def test_rows_are_medians_and_shares_of_all_rounds():
    ours, small, peer = rows(DOCUMENT)
    assert (ours.tokens_per_s, ours.over_peer, ours.shares["schemas"]["valid"]) == (12, 1.625, 100)
    assert peer.shares["schemas"] == {"valid": 62.5, "wrong": 12.5, "refused": 25, "cut": 0, "failed": 0}
    assert small.over_peer is None  # another precision: no comparison of speed
    assert peer.over_peer is None


def test_the_table_names_the_command_and_has_a_line_for_each():
    lines = table(DOCUMENT).splitlines()
    assert lines[0].startswith("`python compare.py`: 8 requests")
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[4:]] == ["ours", "ours, small", "peer"]
    assert "| 12.0 | 1.62 | 20.0 | 100 / 0 / 0 / 0 / 0 |" in lines[4]


def test_the_plot_is_the_same_at_each_call(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="plots are an extra")
    paths = [tmp_path / name for name in ("one.svg", "two.svg")]
    for path in paths:
        plot([DOCUMENT, DOCUMENT], path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert "ours, small (Q8_0)" in paths[0].read_text()


def test_verdicts_and_speeds_of_a_peer_may_come_from_two_documents(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="plots are an extra")
    bursts = {who: burst(20, valid=1) for who in ("thorough", "peer")}
    precision = dict.fromkeys(bursts, "Q8_0")
    one = {"rounds": [bursts], "tokens_per_s_over_peer": {"large": 1.0}}
    large = {**DOCUMENT, "requests": 100, "precision": precision, "by_concurrency": {"8": one}}
    small = {**DOCUMENT, "by_concurrency": dict.fromkeys(("1", "4"), DOCUMENT["by_concurrency"]["4"])}
    plot([large, small], tmp_path / "plot.svg")
    said = (tmp_path / "plot.svg").read_text()
    assert said.count(">tokens/s<") == 1
    assert "thorough" in said  # who is judged
    assert "ours (float32)" in said  # a line of speeds
