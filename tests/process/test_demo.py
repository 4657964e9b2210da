"""The README's first command, in a copy of the checkout without an environment and with an empty model cache; then the
wheel, in that environment, which has nothing but what the package says it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
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
    _check_wheel(root, checkout, tmp_path)


def _check_wheel(root: Path, checkout: Path, tmp_path: Path) -> None:
    """The library's guide runs on the installed wheel, away from the sources."""
    subprocess.run(["make", "dist"], cwd=checkout, capture_output=True, check=True, timeout=DEMO_S)
    (wheel,), (source,) = (checkout / "dist").glob("*.whl"), (checkout / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"LICENSE", "pyproject.toml", "docs/library.md", "src/interlock/__init__.pyi"} <= names
    python = checkout / ".venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", "--no-index", wheel]
    subprocess.run(install, cwd=tmp_path, capture_output=True, check=True, timeout=DEMO_S)
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (root / "docs/library.md").read_text(), re.MULTILINE | re.DOTALL
    )
    program = "\n".join(
        [
            *blocks,
            "from importlib.resources import files; import interlock",
            "assert 'site-packages' in interlock.__file__",
            "assert (files('interlock') / 'py.typed').is_file()",
            "assert (files('interlock') / 'api/admin/static/index.html').is_file()",
        ]
    )
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ran = subprocess.run(
        [python, "-W", "error", "-c", program],
        cwd=tmp_path / "cache" / "demo",
        env=environ,
        capture_output=True,
        text=True,
        timeout=DEMO_S,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
