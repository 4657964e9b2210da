from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock.cli.main import main
from interlock.families.catalog import FAMILIES

TURN = '<think>\nhm\n</think>\n\nHi\n<tool_call>\n{"name": "f", "arguments": {"a": 1.0}}\n</tool_call>'


def parse(text: str, *options: str, exit_code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["parse", "--family", "qwen3", "--json", *options], input=text)
    assert result.exit_code == exit_code, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


@pytest.mark.parametrize("chunk", [(), ("--chunk", "1"), ("--chunk", "7")])
def test_a_turn_becomes_content_reasoning_and_calls(chunk: tuple[str, ...]) -> None:
    parsed = parse(TURN, *chunk)
    assert (parsed["content"], parsed["reasoning"]) == ("Hi", "hm")
    (call,) = parsed["tool_calls"]
    assert call["id"].startswith("call_")
    assert (call["type"], call["function"]) == ("function", {"name": "f", "arguments": '{"a": 1.0}'})
    assert {event["event"] for event in parsed["events"]} >= {"ToolCallStart", "ToolCallEnd"}


def test_a_cut_call_is_not_listed_as_whole() -> None:
    parsed = parse(TURN[: TURN.index(".0") + 1], "--truncated")
    assert parsed["tool_calls"] == []
    assert parsed["incomplete_tool_call"]["function"]["arguments"].startswith('{"a": 1')


def test_a_broken_call_is_an_error_beside_what_was_read() -> None:
    parsed = parse(TURN.replace("1.0", "one"), exit_code=1)
    assert (parsed["content"], parsed["error"]["code"]) == ("Hi", "invalid_model_output")


def test_thinking_may_be_open_already() -> None:
    assert parse("hm</think>\n\nHi", "--thinking", "open")["reasoning"] == "hm"
    assert parse("hm</think>Hi", "--thinking", "none")["content"] == "hm</think>Hi"


def test_calls_of_undeclared_tools_are_pointed_out(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text('[{"type": "function", "function": {"name": "g"}}, {"name": "h", "parameters": {}}]')
    assert parse(TURN, "--tools", str(file))["undeclared_tools"] == ["f"]
    file.write_text('{"name": "g"}')
    result = CliRunner().invoke(main, ["parse", "--family", "qwen3", "--tools", str(file)], input="")
    assert result.exit_code == 2
    assert "no JSON list of tools" in result.output


def test_line_ends_stay_as_they_are() -> None:
    assert parse("a\r\nb")["content"] == "a\r\nb"


def test_an_unknown_family_is_named() -> None:
    result = CliRunner().invoke(main, ["parse", "--family", "nope"], input="")
    assert result.exit_code == 1
    assert "unknown model family 'nope'" in result.output


def test_formats_lists_every_family() -> None:
    listed = json.loads(CliRunner().invoke(main, ["formats", "--json"]).stdout)
    assert [row["name"] for row in listed] == [family.name for family in FAMILIES]
    assert listed[0]["call"].startswith("<tool_call>\n")
    table = CliRunner().invoke(main, ["formats"]).stdout
    assert "generic" in table
    assert "<tool_call>" in table
