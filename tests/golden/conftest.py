"""``pytest tests/golden --update-golden`` writes the transcripts anew; look at the difference before committing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with the golden file of that path below ``tests/golden``."""
    update = request.config.getoption("--update-golden", default=False)

    def compare(path: Path, text: str) -> None:
        file = Path(__file__).parent / path
        if update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == text

    return compare
