from __future__ import annotations

import pytest

from interlock.runners import threads


@pytest.mark.parametrize(
    ("physical", "affinity", "quota", "expected"),
    [
        (8, 16, "max 100000", 8),
        (8, 3, "max 100000", 3),
        (64, 64, "350000 100000", 4),
        (4, 4, "20000 100000", 1),
        (None, 4, "nonsense", 1),
    ],
)
def test_threads_stay_within_what_the_process_may_use(
    monkeypatch, tmp_path, physical, affinity, quota, expected
):
    path = tmp_path / "cpu.max"
    path.write_text(quota)
    monkeypatch.setattr(threads, "_CGROUP_CPU_MAX", path)
    monkeypatch.setattr(threads.psutil, "cpu_count", lambda logical: physical)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda pid: set(range(affinity)), raising=False)
    assert threads.default_threads() == expected
    assert threads.default_threads(2) == max(1, expected // 2)
    assert threads.default_threads(100) == 1


def test_no_quota_file_is_no_limit(tmp_path):
    assert threads._cgroup_quota(tmp_path / "none") is None
