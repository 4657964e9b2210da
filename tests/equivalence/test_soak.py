"""A short run of ``benchmarks/soak.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_no_request_is_lost_and_no_output_is_wrong_among_faults(root: Path):
    command = [sys.executable, "benchmarks/soak.py", "--requests", "250", "--seed", "1"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    figures = json.loads(result.stdout.splitlines()[-1])
    assert figures["compared_with_solo"] > 0
    assert figures["wrong"] == 0
    assert figures["preempted"] > 50
    assert {"stop", "length", "abort", "error forward_failed"} <= figures["ends"].keys()
