"""The README's first command, in a copy of the checkout without an environment and with an empty model cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

DEMO_S = 900


@pytest.mark.demo
def test_make_demo_sets_everything_up_and_its_answers_hold(root: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    for name in listed.decode().rstrip("\0").split("\0"):
        if (root / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, checkout / name)
    inherited = {
        key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL")
    }

    result = subprocess.run(
        ["make", "demo"],
        cwd=checkout,
        env={**inherited, "INTERLOCK_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=DEMO_S,
    )

    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    assert "3 of 3 answers hold" in result.stdout
