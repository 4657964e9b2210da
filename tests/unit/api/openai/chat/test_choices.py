"""Several answers to one request, and log probabilities: streamed or not, the client gets the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.scripted import USAGE, ScriptedService, call, finish, text
from interlock.core.events import Failed, Finished, ScoredToken, TextDelta, TokenLogprobs
from interlock.errors import InterlockError

SCORED = TokenLogprobs(
    tokens=(ScoredToken(token_id=104, data=b"h", logprob=-0.5, top=((104, b"h", -0.5), (105, b"\xc3", -1.5))),)
)
CONTENT = [
    {
        "token": "h",
        "logprob": -0.5,
        "bytes": [104],
        "top_logprobs": [
            {"token": "h", "logprob": -0.5, "bytes": [104]},
            {"token": "�", "logprob": -1.5, "bytes": [195]},
        ],
    }
]
ANSWER = [SCORED, TextDelta(text="h"), Finished(reason="stop", usage=USAGE)]


def numbered(request):
    return text(f"answer {request.sampling.seed}")


async def test_each_answer_has_its_own_seed(make_api) -> None:
    api = make_api(ScriptedService(numbered))
    body = (await api.chat(n=3, seed=7)).json()
    assert [choice["message"]["content"] for choice in body["choices"]] == ["answer 7", "answer 8", "answer 9"]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert body["usage"]["prompt_tokens"] == USAGE.prompt_tokens
    assert body["usage"]["completion_tokens"] == 3 * USAGE.completion_tokens


async def test_streamed_answers_are_told_apart_by_their_index(make_api) -> None:
    api = make_api(ScriptedService(numbered))
    *chunks, last, done = await api.events(n=2, seed=7, stream_options={"include_usage": True})
    texts, reasons = {0: "", 1: ""}, {0: [], 1: []}
    for chunk in chunks:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
        reasons[choice["index"]] += [choice["finish_reason"]] if choice["finish_reason"] else []
    assert texts == {0: "answer 7", 1: "answer 8"}
    assert reasons == {0: ["stop"], 1: ["stop"]}
    assert last["usage"]["completion_tokens"] == 2 * USAGE.completion_tokens
    assert done == "[DONE]"


async def test_one_answer_that_fails_ends_them_all(make_api) -> None:
    error = InterlockError("worker_died", "the worker died")
    service = ScriptedService(
        lambda request: [Failed(error=error)] if request.sampling.seed == 8 else text("a")
    )
    api = make_api(service)
    assert (await api.error(500, n=2, seed=7))["code"] == "worker_died"
    response = await api.chat(n=2, seed=7, stream=True)
    assert "worker_died" in response.text
    assert all(generation.num_closes for generation in service.generations)


async def test_calls_cut_off_are_named_in_their_choice(make_api) -> None:
    api = make_api(ScriptedService(lambda _: [*call("f", ["{"], complete=False), *finish("length")]))
    body = (await api.chat(n=2)).json()
    assert [choice["interlock"] for choice in body["choices"]] == [{"incomplete_tool_calls": [0]}] * 2


@pytest.mark.parametrize("n", [0, -1, 65])
async def test_the_number_of_answers_is_bounded(api, n: int) -> None:
    assert (await api.error(n=n))["param"] == "n"


async def test_logprobs_are_those_of_the_content(make_api) -> None:
    api = make_api(ScriptedService(lambda _: ANSWER))
    choice = (await api.chat(logprobs=True, top_logprobs=2)).json()["choices"][0]
    assert choice["logprobs"] == {"content": CONTENT, "refusal": None}
    assert api.service.requests[-1].sampling.logprobs == 2
    chunks = (await api.events(logprobs=True, top_logprobs=2))[:-1]
    found = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["logprobs"]]
    assert [(choice["delta"], choice["logprobs"]["content"]) for choice in found] == [
        ({"content": "h"}, CONTENT)
    ]


async def test_logprobs_need_to_be_asked_for(api) -> None:
    assert (await api.chat()).json()["choices"][0]["logprobs"] is None
    assert api.service.requests[-1].sampling.logprobs is None
    await api.chat(logprobs=True)
    assert api.service.requests[-1].sampling.logprobs == 0
    assert (await api.error(top_logprobs=2))["param"] == "top_logprobs"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"grammar": 'root ::= "a"'}, "grammar"),
        ({"json_schema": {"type": "object"}}, "json_schema"),
        ({"response_format": {"type": "regex_schema", "regex_schema": "a+"}}, "response_format.regex_schema"),
    ],
)
async def test_other_servers_spellings_of_a_constraint_are_read(api, fields: dict, param: str) -> None:
    assert (await api.chat(**fields)).status_code == 200
    assert api.service.requests[-1].output_format.param == param


@pytest.mark.parametrize(
    "fields",
    [
        {"grammar": 'root ::= "a"', "json_schema": {"type": "object"}},
        {"grammar": 'root ::= "a"', "response_format": {"type": "json_object"}},
        {"response_format": {"type": "regex_schema", "regex_schema": "a", "schema": {}}},
    ],
)
async def test_two_constraints_are_a_conflict(api, fields: dict) -> None:
    assert (await api.error(**fields))["code"] == "conflicting_parameters"


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "structural_tag", "format": {"type": "any_text"}}},
        {"structured_outputs": {"structural_tag": '{"format": {"type": "any_text"}}'}},
        {"structured_outputs": {"structural_tag": {"format": {"type": "any_text"}}}},
    ],
)
async def test_a_structural_tag_is_read_as_text(api, fields: dict[str, Any]) -> None:
    await api.chat(**fields)
    found = api.service.requests[0].output_format
    assert json.loads(found.tag) == {"format": {"type": "any_text"}}


@pytest.mark.parametrize(
    ("format_", "code"),
    [
        ({"type": "structural_tag"}, "missing_field"),
        ({"type": "structural_tag", "structures": []}, "missing_field"),
        ({"type": "structural_tag", "format": {}, "triggers": []}, "missing_field"),
        ({"type": "json_object", "format": {}}, "conflicting_parameters"),
    ],
)
async def test_a_structural_tag_is_whole_and_alone(api, format_: dict[str, Any], code: str) -> None:
    assert (await api.error(response_format=format_))["code"] == code
