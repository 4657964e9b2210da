"""Records what a real vLLM answers, for the test that replays it.

    python scripts/record_vllm.py http://127.0.0.1:8421 TOKENIZER tests/golden/vllm/recorded.json

The server must serve the demo model (see `make test-vllm`). Each record holds a request and the bytes of its answer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from interlock.constraints.lowering import lower
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.remote.vllm import PROBE
from interlock.remote.wire import COMPLETIONS, GENERATE, request_body
from interlock.tokenization.load import describe

QUESTION = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
SCHEMA = '{"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}'


def requests(tokenizer_path: Path) -> Iterator[tuple[str, EngineRequest]]:
    """Named requests, the same at each call."""
    tokenizer = describe(tokenizer_path).tokenizer
    lowered = lower(ConstraintSpec(root=JsonValue(SCHEMA)), {})
    broken = LoweredConstraint(provider="llguidance", grammar="start: undefined", key="broken")
    for name, constraint, logprobs in (
        ("free", None, None),
        ("scored", None, 2),
        ("constrained", lowered, None),
        ("refused", broken, None),
    ):
        yield (
            name,
            EngineRequest(
                request_id=name,
                prompt_ids=tuple(tokenizer.encode(QUESTION)),
                sampling=SamplingParams(temperature=0.0, logprobs=logprobs),
                max_tokens=24,
                stop_ids=tokenizer.vocabulary.stop_ids,
                constraint=constraint,
            ),
        )


def record(url: str, tokenizer: Path) -> list[dict[str, Any]]:
    """Every request over both endpoints, and what is asked at the start."""
    model = httpx.get(f"{url}/v1/models").json()["data"][0]["id"]
    asked: list[tuple[str, Any]] = [("/health", None), ("/v1/models", None)]
    asked.append(("/tokenize", {"model": model, "prompt": PROBE, "add_special_tokens": False}))
    for endpoint in (GENERATE, COMPLETIONS):
        asked += [(endpoint, request_body(endpoint, model, request)) for _, request in requests(tokenizer)]
    return [_record(url, path, body) for path, body in asked]


def _record(url: str, path: str, body: Any) -> dict[str, Any]:
    method = "GET" if body is None else "POST"
    answer = httpx.request(method, f"{url}{path}", json=body, timeout=120)
    return {"path": path, "body": body, "status": answer.status_code, "answer": answer.text}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    options.target.write_text(json.dumps(record(options.url, options.tokenizer), indent=1) + "\n")


if __name__ == "__main__":
    main()
