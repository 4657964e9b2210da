"""The metrics and the page that lists them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from interlock.core.engine import EngineStats
from interlock.core.timings import RequestTimings
from interlock.metrics import Metrics

COUNTED_ELSEWHERE = {"restarts"}


def test_the_operations_page_lists_every_metric_and_no_other(root: Path) -> None:
    metrics = Metrics()
    metrics.engine.values = {}
    kinds = {}
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        kinds[name] = family.type
    page = (root / "docs" / "operations.md").read_text()

    assert dict(re.findall(r"^\| `(interlock_\w+)`[^|]*\| (\w+) \|", page, re.MULTILINE)) == kinds


def test_everything_the_worker_reports_is_a_metric() -> None:
    metrics = Metrics()
    names = [field.name for field in fields(EngineStats) if field.name not in COUNTED_ELSEWHERE]
    metrics.engine.values = {name: number for number, name in enumerate(names, 1)}
    shown = [
        sample.value
        for family in metrics.registry.collect()
        if family.name.startswith("interlock_engine_")
        for sample in family.samples
    ]

    assert sorted(shown) == list(range(1, len(names) + 1))


IN_BOTH = {
    "queue_s": "request_queue_seconds",
    "compile_s": "request_compile_seconds",
    "cache_hit": "constraint_lowering",
    "prefill_s": "request_prefill_seconds",
    "decode_s": "request_decode_seconds",
    "mask_s": "request_mask_seconds",
    "num_forced": "engine_forced_tokens",
    "num_drafted": "engine_draft_tokens",
    "num_accepted": "engine_accepted_tokens",
    "num_vetoed": "engine_vetoed_tokens",
    "num_preempted": "engine_preemptions",
    "num_backtracked": "engine_backtracks",
}


def test_what_a_request_can_be_told_of_itself_is_counted_for_all_and_documented(root: Path) -> None:
    metrics = Metrics()
    metrics.engine.values = {}
    families = {family.name for family in metrics.registry.collect()}
    page = (root / "docs" / "trace.md").read_text()

    assert [field.name for field in fields(RequestTimings)] == list(IN_BOTH)
    assert {f"interlock_{name}" for name in IN_BOTH.values()} <= families
    assert [name for name in IN_BOTH if f"`{name}`" not in page] == []
