"""Arrays whose items run out, over HTTP on the embedded model: what is written anew was never told, and where no way is left
there is an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from interlock.config import SpeculativeConfig
from interlock.tokenization.load import describe
from tests.clients.asking import ask, json_schema, metric, post

pytestmark = [
    pytest.mark.model,
    pytest.mark.local_engine("what a guard has to take back, others have told already"),
]
GUESSES = SpeculativeConfig(methods=("ngram", "skeleton"), adaptive=False)
COLOURS, SIZES = ("red", "green", "blue"), ("s", "m")
SEEDS = range(2)


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def pair(colour: str, size: str) -> dict[str, str]:
    return {"colour": colour, "size": size}


PAIR = record(colour={"enum": list(COLOURS)}, size={"enum": list(SIZES)})
RED, GREEN, BLUE = (pair(colour, "s") for colour in COLOURS)


def positions(*items: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "array", "uniqueItems": True, "prefixItems": list(items), "items": False, "minItems": len(items), **more
    }  # fmt: skip


RUNS_OUT = record(
    ok={"type": "boolean"},
    rows=positions(PAIR, {"enum": [RED, GREEN]}, {"enum": [RED, BLUE]}, contains={"enum": [RED, GREEN]}, minContains=2),
)  # fmt: skip
NO_WAY = record(
    ok={"type": "boolean"},
    rows=positions({"enum": [RED, BLUE]}, {"enum": [RED, GREEN]}, PAIR, contains={"enum": [RED, pair("green", "m"), pair("blue", "m")]}, minContains=3),
)  # fmt: skip
WHOLE_PRODUCT = {
    "type": "array", "uniqueItems": True, "items": PAIR, "minItems": len(COLOURS) * len(SIZES)
}  # fmt: skip


@pytest.fixture(scope="module")
def plain(demo_server: Any) -> Iterator[str]:
    with demo_server(slots=2, context_tokens=512) as url:
        yield url


@pytest.fixture(scope="module")
def guessing(demo_server: Any) -> Iterator[str]:
    with demo_server(slots=2, context_tokens=512, speculative=GUESSES) as url:
        yield url


@pytest.fixture(scope="module")
def liked(demo_model: Path) -> dict[str, int]:
    """So much more of these words that the second item is what the third one needs, and repeats nothing."""
    tokenizer = describe(demo_model).tokenizer
    ids = [tokenizer.encode(word) for word in ("red", "m")]
    assert all(len(word) == 1 for word in ids)
    return {str(word[0]): 10 for word in ids}


def body(schema: Any, seed: int, **fields: Any) -> dict[str, Any]:
    return ask("Name things.", response_format=json_schema(schema), seed=seed, temperature=1.0, **fields)


def whole(url: str, schema: Any, seed: int, **fields: Any) -> str:
    response = post(url, body(schema, seed, max_tokens=160, **fields))
    assert response.status_code == 200, response.text
    choice = response.json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    text: str = choice["message"]["content"]
    return text


def events(url: str, schema: Any, seed: int, **fields: Any) -> list[Any]:
    """The events of a stream, the end of the stream as ``None``."""
    response = post(url, body(schema, seed, stream=True, max_tokens=160, **fields))
    assert response.status_code == 200, response.text
    told = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [None if text == "[DONE]" else json.loads(text) for text in told]


def pieces(told: list[Any]) -> list[str]:
    choices = [choice for event in told if event for choice in event.get("choices", ())]
    return [text for choice in choices if (text := choice["delta"].get("content"))]


def test_what_is_written_anew_is_told_once_streamed_and_guessed_alike(
    plain: str, guessing: str, liked: dict[str, int]
) -> None:
    for seed in SEEDS:
        told = events(plain, RUNS_OUT, seed, logit_bias=liked)
        text = "".join(pieces(told))
        jsonschema.validate(json.loads(text), RUNS_OUT)
        assert told[-1] is None
        assert whole(guessing, RUNS_OUT, seed, logit_bias=liked) == text
    for url in (plain, guessing):
        assert metric(url, "interlock_engine_backtracks_total") > 0, "no dead end"


def test_an_array_of_a_whole_product_has_every_combination(guessing: str) -> None:
    rows = json.loads(whole(guessing, WHOLE_PRODUCT, 1))
    assert sorted((row["colour"], row["size"]) for row in rows) == sorted(product(COLOURS, SIZES))


def test_where_no_way_is_left_there_is_an_error_instead_of_an_answer(guessing: str) -> None:
    response = post(guessing, body(NO_WAY, 1))
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "matcher_failed"


def test_a_stream_that_has_no_way_left_tells_nothing_of_the_array_then_the_error_and_ends(
    guessing: str,
) -> None:
    told = events(guessing, NO_WAY, 1)
    assert "{" not in "".join(pieces(told))[1:]
    assert told[-2]["error"]["code"] == "matcher_failed"
    assert told[-1] is None
