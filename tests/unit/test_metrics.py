"""The metrics and the page that lists them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from interlock.core.engine import EngineStats
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
