"""Completions: prompts of every kind, several at once, constraints, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.scripted import USAGE, text
from interlock.core.events import PromptLogprobs, ScoredToken, TokenLogprobs
from interlock.core.output_format import RegexFormat

PATH = "/v1/completions"


@pytest.fixture
def post(api):
    async def send(**fields: Any) -> Any:
        return await api.client.post(PATH, json={"model": "scripted", "prompt": "Hi", **fields})

    return send


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("Hi", ["Hi"]),
        (["Hi", "Ho"], ["Hi", "Ho"]),
        ([1, 2], [(1, 2)]),
        ([[1, 2], [3]], [(1, 2), (3,)]),
    ],
)
async def test_prompts_of_every_kind(api, post, prompt: Any, prompts: list[Any]) -> None:
    body = (await post(prompt=prompt)).json()
    assert [request.prompt for request in api.service.requests] == prompts
    assert [choice["index"] for choice in body["choices"]] == list(range(len(prompts)))
    assert body["usage"]["prompt_tokens"] == len(prompts) * USAGE.prompt_tokens


async def test_answers_are_grouped_by_prompt(api, post) -> None:
    api.service.answer = lambda request: text(f"{request.prompt}{request.sampling.seed}")
    body = (await post(prompt=["a", "b"], n=2, seed=5)).json()
    assert [choice["text"] for choice in body["choices"]] == ["a5", "a6", "b5", "b6"]
    assert body["usage"]["prompt_tokens"] == 2 * USAGE.prompt_tokens
    assert body["usage"]["completion_tokens"] == 4 * USAGE.completion_tokens


async def test_streamed_answers_are_told_apart(api, post) -> None:
    api.service.answer = lambda request: text(str(request.prompt), "!")
    response = await post(prompt=["a", "b"], stream=True, echo=True)
    texts = {0: "", 1: ""}
    for event in response.text.split("\n\n")[:-2]:
        (choice,) = json.loads(event.removeprefix("data: "))["choices"]
        texts[choice["index"]] += choice["text"]
    assert texts == {0: "aa!", 1: "bb!"}


async def test_a_constraint(api, post) -> None:
    await post(structured_outputs={"regex": "a+"})
    assert api.service.requests[-1].output_format == RegexFormat(pattern="a+")


async def test_defaults_are_openais(api, post) -> None:
    await post()
    request = api.service.requests[-1]
    assert (request.max_tokens, request.messages, request.sampling.logprobs) == (16, (), None)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [["a"]]}, "prompt[0][0]"),
        ({"prompt": ["a"] * 65}, "prompt"),
        ({"prompt": ["a"] * 64, "n": 2}, "n"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
        ({"messages": []}, "messages"),
        ({"tools": [{}]}, "tools"),
        ({"stop": [""]}, "stop"),
    ],
)
async def test_what_is_wrong_is_named(post, fields: Any, param: str) -> None:
    response = await post(**fields)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


HI = (
    ScoredToken(token_id=5, data=b"H", logprob=None),
    ScoredToken(token_id=6, data=b"i", logprob=-2.0, top=((7, b"o", -0.5),), rank=3),
)
SCORED = [
    PromptLogprobs(tokens=HI),
    TokenLogprobs(tokens=(ScoredToken(token_id=8, data=b"!", logprob=-1.0, top=((8, b"!", -1.0),)),)),
    *text("!"),
]
ECHOED = {
    "tokens": ["H", "i", "!"],
    "token_logprobs": [None, -2.0, -1.0],
    "top_logprobs": [None, {"o": -0.5}, {"!": -1.0}],
    "text_offset": [0, 1, 2],
}


async def test_an_echo_has_the_scores_of_the_prompt_too(api, post) -> None:
    api.service.answer = lambda _: SCORED
    (choice,) = (await post(echo=True, logprobs=1)).json()["choices"]
    assert api.service.requests[-1].sampling.prompt_logprobs == 1
    assert choice["text"] == "Hi!"
    assert choice["logprobs"] == ECHOED
    assert "prompt_logprobs" not in choice


async def test_no_tokens_and_an_echo_are_the_prompt_alone(api, post) -> None:
    api.service.answer = lambda _: SCORED
    body = (await post(echo=True, logprobs=1, max_tokens=0)).json()
    (choice,) = body["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("Hi", "length")
    assert choice["logprobs"] == {key: values[:2] for key, values in ECHOED.items()}
    assert body["usage"]["completion_tokens"] == 0
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] == USAGE.prompt_tokens


async def test_a_stream_of_no_tokens_and_an_echo_is_the_prompt_alone(api, post) -> None:
    api.service.answer = lambda _: SCORED
    response = await post(echo=True, logprobs=1, max_tokens=0, stream=True)
    choices = [
        json.loads(event.removeprefix("data: "))["choices"][0] for event in response.text.split("\n\n")[:-2]
    ]
    assert [(choice["text"], choice["finish_reason"]) for choice in choices] == [("Hi", None), ("", "length")]


@pytest.mark.parametrize(("echo", "expected"), [(False, 0), (True, 1)])
async def test_no_tokens_without_an_echo_are_left_to_resolving(api, post, echo: bool, expected: int) -> None:
    await post(echo=echo, max_tokens=0)
    assert api.service.requests[-1].max_tokens == expected


async def test_a_streamed_echo_comes_with_its_scores(api, post) -> None:
    api.service.answer = lambda _: SCORED
    response = await post(echo=True, logprobs=1, stream=True)
    choices = [
        json.loads(event.removeprefix("data: "))["choices"][0] for event in response.text.split("\n\n")[:-2]
    ]
    assert [choice["text"] for choice in choices] == ["Hi", "!", ""]
    told = [choice["logprobs"] for choice in choices if choice["logprobs"]]
    assert {key: [value for one in told for value in one[key]] for key in ECHOED} == ECHOED


@pytest.mark.parametrize(
    ("path", "prompt"),
    [(PATH, {"prompt": "Hi"}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})],
)
async def test_prompt_logprobs_are_told_as_vllm_tells_them(api, path: str, prompt: dict[str, Any]) -> None:
    api.service.answer = lambda _: SCORED
    body = (await api.client.post(path, json={"model": "scripted", "prompt_logprobs": 1, **prompt})).json()
    told = body["choices"][0] if path == PATH else body
    assert api.service.requests[-1].sampling.prompt_logprobs == 1
    assert told["prompt_logprobs"] == [
        None,
        {
            "7": {"logprob": -0.5, "rank": 1, "decoded_token": "o"},
            "6": {"logprob": -2.0, "rank": 3, "decoded_token": "i"},
        },
    ]
