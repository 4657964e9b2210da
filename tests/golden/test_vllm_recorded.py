"""What a real vLLM 0.32 answered (recorded by scripts/record_vllm.py), read by the engine over HTTP.

The server plays a record only for the very request that was recorded, so a change of what we say shows here too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from interlock.config import VllmConfig
from interlock.core.engine import EngineOutput
from interlock.remote.vllm import VllmEngine
from interlock.remote.wire import COMPLETIONS, GENERATE
from interlock.tokenization.load import describe
from scripts.record_vllm import requests

RECORDED = Path(__file__).parent / "vllm" / "recorded.json"


@pytest.fixture(params=[GENERATE, COMPLETIONS])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server with one of the two endpoints."""
    records = [one for one in json.loads(RECORDED.read_text()) if one["path"] in (request.param, "/health", "/v1/models", "/tokenize")]  # fmt: skip

    class Replay(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.play(None)

        def do_POST(self) -> None:
            self.play(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def play(self, body: Any) -> None:
            found = [one for one in records if one["path"] == self.path and one["body"] == body]
            known = self.path in {one["path"] for one in records}
            status, answer = (found[0]["status"], found[0]["answer"]) if found else (405 if known else 404, "")
            data = answer.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_recorded_answers_are_read(url: str, demo_model: Path):
    tokenizer = describe(demo_model).tokenizer
    engine = VllmEngine(VllmConfig(urls=(url,), tokenizer=demo_model), tokenizer)
    await engine.start()
    try:
        assert engine.max_context_tokens == 2048
        answers = {name: [one async for one in engine.generate(asked)] for name, asked in requests(demo_model)}
    finally:
        await engine.stop()

    def text(outputs: list[EngineOutput]) -> str:
        return tokenizer.decode([token_id for output in outputs for token_id in output.token_ids])

    assert text(answers["free"]) == "The capital of France is Paris."
    failure = answers["constrained"][-1].failure
    assert failure is None, (
        f"asked otherwise than was recorded? record anew: scripts/record_vllm.py ({failure})"
    )
    assert text(answers["constrained"]) == '{"city": "Paris"}'
    ends = {name: outputs[-1] for name, outputs in answers.items()}
    assert [ends[name].finish_reason for name in ("free", "scored", "constrained")] == ["stop"] * 3
    assert [ends[name].is_accepting for name in ("free", "scored", "constrained")] == [None, None, True]
    scores = [score for output in answers["scored"] for score in output.logprobs]
    assert [score.token_id for score in scores] == tokenizer.encode(text(answers["scored"]))
    assert all(len(score.top) == 2 and score.top[0][1] >= score.top[1][1] for score in scores)
    assert scores[0].top[0] == (scores[0].token_id, scores[0].logprob)
    assert ends["refused"].failure is not None
    assert ends["refused"].failure.code == "invalid_value"
    assert "unknown name" in ends["refused"].failure.message
