from __future__ import annotations

from typing import Any

import pytest

from interlock.api.fields import MAX_NAMED, ignored_header
from interlock.api.openai.chat.fields import REFUSED
from interlock.api.openai.chat.wire import WireChatRequest
from interlock.core.request import JsonPolicy


@pytest.mark.parametrize("name", REFUSED)
async def test_a_field_that_would_change_the_output_is_refused_by_name(api, name: str) -> None:
    error = await api.error(**{name: "something"})
    assert (error["code"], error["param"]) == ("unsupported_parameter", name)
    assert name in error["message"]


@pytest.mark.parametrize("name", REFUSED)
async def test_its_null_and_its_neutral_values_pass_and_are_not_reported(api, name: str) -> None:
    for value in (None, *REFUSED[name].neutral):
        response = await api.chat(**{name: value})
        assert response.status_code == 200, (name, value)
        assert "x-interlock-ignored" not in response.headers


def test_no_field_is_both_read_and_refused() -> None:
    assert not set(REFUSED) & set(WireChatRequest.model_fields)


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"guided_json": {"type": "object"}}, "structured_outputs.json"),
        ({"guided_regex": "a"}, "structured_outputs.regex"),
        ({"functions": [{"name": "f"}]}, "tools"),
        ({"function_call": "auto"}, "tool_choice"),
        ({"text": {"format": {"type": "json_schema"}}}, "response_format"),
        ({"stop_sequences": ["a"]}, "stop"),
    ],
)
async def test_another_servers_spelling_is_told_the_right_one(api, fields: dict, hint: str) -> None:
    assert hint in (await api.error(**fields))["hint"]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_ignored_is_named_in_a_header(api, stream: bool) -> None:
    response = await api.chat(stream=stream, user="me", store=True, zebra=1, metadata={}, service_tier=None)
    assert response.headers["x-interlock-ignored"] == "metadata, store, user, zebra"


async def test_ignored_options_inside_stream_options_are_named(api) -> None:
    response = await api.chat(stream=True, stream_options={"include_usage": True, "include_obfuscation": False})
    assert response.headers["x-interlock-ignored"] == "stream_options.include_obfuscation"


async def test_ignored_fields_of_nested_objects_are_named_once_with_their_path(api) -> None:
    parts = [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]
    user = {"role": "user", "content": parts, "weight": 1, "audio": None}
    response = await api.chat(
        messages=[user, user],
        tools=[{"type": "function", "function": {"name": "f", "returns": {}}}],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"x": 1}, "doc": "d"}},
    )
    assert response.headers["x-interlock-ignored"] == (
        "messages[].content[].cache_control, messages[].weight, response_format.json_schema.doc,"
        " tools[].function.returns"
    )


async def test_nothing_ignored_means_no_header(api) -> None:
    assert "x-interlock-ignored" not in (await api.chat(temperature=0.5)).headers


async def test_a_clients_field_names_cannot_break_the_header(api) -> None:
    response = await api.chat(**{"a\r\nset-cookie: x": 1, "ü,": 2, "x" * 5000: 3})
    assert response.status_code == 200
    assert "set-cookie" not in response.headers
    names = response.headers["x-interlock-ignored"].split(", ")
    assert len(names) == 3
    assert all(len(name) < 200 for name in names)


def test_the_header_is_bounded() -> None:
    value = ignored_header(f"field{i:03}" for i in range(1000))
    assert value.count(",") == MAX_NAMED
    assert value.endswith(", ...")


@pytest.mark.parametrize("option", ["whitespace_pattern", "something_new"])
async def test_unknown_options_of_structured_outputs_are_refused(api, option: str) -> None:
    error = await api.error(structured_outputs={"regex": "a", option: "x"})
    assert (error["code"], error["param"]) == ("unsupported_parameter", f"structured_outputs.{option}")


@pytest.mark.parametrize(
    ("option", "own", "policy"),
    [
        ("disable_any_whitespace", {"whitespace": "flexible"}, JsonPolicy(whitespace="fixed")),
        ("disable_additional_properties", {"open_objects": True}, JsonPolicy(open_objects=False)),
    ],
)
async def test_options_of_other_servers_mean_interlocks_own(
    api, option: str, own: dict[str, Any], policy: JsonPolicy
) -> None:
    asked = {"structured_outputs": {"json": {"type": "object"}, option: True}}
    assert (await api.chat(**asked)).status_code == 200
    assert api.service.requests[-1].json_policy == policy
    error = await api.error(**asked, interlock=own)
    assert (error["code"], error["param"]) == ("conflicting_parameters", f"structured_outputs.{option}")


async def test_structured_outputs_with_every_key_of_another_servers_object_pass_when_null(api) -> None:
    empty = dict.fromkeys(("json", "choice", "grammar", "json_object", "structural_tag", "whitespace_pattern"))
    options = {"disable_fallback": False, "disable_any_whitespace": False}
    assert (await api.chat(structured_outputs={**empty, **options, "regex": "a+"})).status_code == 200
