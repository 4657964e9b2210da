"""Log probabilities on every endpoint that has them: of which distribution, for one answer and for several."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.scripted import USAGE
from interlock.core.events import Finished, ScoredToken, TextDelta, TokenLogprobs

MESSAGES = [{"role": "user", "content": "Hi"}]
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": MESSAGES, "logprobs": True, "top_logprobs": 1},
    "/v1/completions": {"prompt": "x", "logprobs": 1},
    "/v1/responses": {"input": "x", "top_logprobs": 1},
    "/api/chat": {"messages": MESSAGES, "logprobs": True, "top_logprobs": 1},
    "/api/generate": {"prompt": "x", "logprobs": True, "top_logprobs": 1},
}
PATHS = pytest.mark.parametrize("path", ASKED)


def scored(text: str) -> list[Any]:
    token = ScoredToken(token_id=1, data=text.encode(), logprob=-0.5, top=((2, b"b", -0.25),))
    return [TokenLogprobs(tokens=(token,)), TextDelta(text=text), Finished(reason="stop", usage=USAGE)]


def objects(text: str) -> list[Any]:
    lines = (line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: {", "{")))
    return [json.loads(line) for line in lines]


def remarks(item: dict[str, Any]) -> dict[str, Any] | None:
    inner = item.get("response")
    return item.get("interlock") or (inner.get("interlock") if isinstance(inner, dict) else None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("asked", "said"), [({}, "masked"), ({"logprobs": "model"}, "model")])
@PATHS
async def test_the_answer_says_which_they_are(api, path: str, asked: Any, said: str, stream: bool) -> None:
    api.service.answer = lambda _: scored("a")
    body = {"model": "scripted", "stream": stream, **ASKED[path], "interlock": asked}
    response = await api.client.post(path, json=body)
    assert response.status_code == 200, response.text
    sampling = api.service.requests[0].sampling
    assert (sampling.logprobs, sampling.logprobs_of) == (1, said)
    assert [told for item in objects(response.text) if (told := remarks(item))] == [{"logprobs": said}]


@PATHS
async def test_nothing_is_said_where_none_are_asked_for(api, path: str) -> None:
    body = {key: value for key, value in ASKED[path].items() if "logprobs" not in key}
    response = await api.client.post(path, json={"model": "scripted", "stream": False, **body})
    assert remarks(response.json()) is None


@PATHS
async def test_another_word_is_refused(api, path: str) -> None:
    body = {"model": "scripted", **ASKED[path], "interlock": {"logprobs": "raw"}}
    response = await api.client.post(path, json=body)
    assert response.status_code == 400
    assert "interlock.logprobs" in response.text


async def test_each_of_several_answers_has_its_own(api) -> None:
    api.service.answer = lambda request: scored("abc"[request.sampling.seed])
    for path, tokens in (
        ("/v1/chat/completions", lambda choice: [item["token"] for item in choice["logprobs"]["content"]]),
        ("/v1/completions", lambda choice: choice["logprobs"]["tokens"]),
    ):
        body = {"model": "scripted", "n": 3, "seed": 0, **ASKED[path]}
        whole = (await api.client.post(path, json=body)).json()["choices"]
        assert [tokens(choice) for choice in whole] == [["a"], ["b"], ["c"]]
        chunks = objects((await api.client.post(path, json={**body, "stream": True})).text)
        choices = [choice for chunk in chunks for choice in chunk["choices"] if choice.get("logprobs")]
        assert sorted((choice["index"], tokens(choice)) for choice in choices) == [
            (0, ["a"]),
            (1, ["b"]),
            (2, ["c"]),
        ]


async def test_completions_have_openais_parallel_lists(api) -> None:
    api.service.answer = lambda _: [*scored("ab")[:2], *scored("cd")]
    body = {"model": "scripted", **ASKED["/v1/completions"]}
    (choice,) = (await api.client.post("/v1/completions", json=body)).json()["choices"]
    assert choice["logprobs"] == {
        "tokens": ["ab", "cd"],
        "token_logprobs": [-0.5, -0.5],
        "top_logprobs": [{"b": -0.25}, {"b": -0.25}],
        "text_offset": [0, 2],
    }
