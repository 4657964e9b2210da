"""``pytest tests/golden --update-golden`` writes the transcripts anew; look at the difference before committing."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.api.app import build_app
from interlock.api.scripted import ScriptedService
from interlock.config import HttpConfig
from interlock.core.tools import ToolContext
from interlock.metrics import Metrics

REQUIRED = ToolContext(constrained=True, constrained_reason="tool_choice requires a call")
_EQUAL = [
    (re.compile(r"\b(chatcmpl-|cmpl-|msg_|resp_|rs_|fc_|ctc_|req_)[0-9a-f]{32}"), r"\1ID"),
    (re.compile(r'"(created|created_at|completed_at)":[0-9.]+'), r'"\1":0'),
    (re.compile(r'"created_at":"[^"]*"'), '"created_at":"TIME"'),
    (re.compile(r'_duration":\d+'), '_duration":0'),
]

Record = Callable[[str, str, dict[str, Any], Any], Awaitable[None]]


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


@pytest.fixture
def record(golden: Callable[[Path, str], None]) -> Record:
    """Post a body to a scripted server and compare everything on the wire, ids and times made equal. A script
    that is callable is called with the request."""

    async def post(file: str, path: str, body: dict[str, Any], answer: Any) -> None:
        script = answer if callable(answer) else lambda _: answer
        required = body.get("tool_choice") in ("required", {"type": "any"})
        service = ScriptedService(script, tools=REQUIRED if required else None)
        app = build_app(service, HttpConfig(), Metrics(), health=lambda: service.phase, stats=service.stats)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            response = await client.post(path, json=body)
        golden(Path(f"{file}.txt"), _transcript(path, body, response))

    return post


def _transcript(path: str, body: dict[str, Any], response: httpx.Response) -> str:
    headers = "".join(
        f"{key}: {value}\n" for key, value in sorted(response.headers.items()) if key != "content-length"
    )
    text = (
        f"POST {path}\n{json.dumps(body, ensure_ascii=False)}\n\n"
        f"{response.status_code}\n{headers}\n{response.content.decode()}\n"
    )
    for pattern, replacement in _EQUAL:
        text = pattern.sub(replacement, text)
    return text
