from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock.cli.main import main
from interlock.families.catalog import FAMILIES

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "content": "rain", "tool_call_id": "a"},
]
BEGINS = (
    r"<\|im_start\|>assistant\n|<｜Assistant｜></think>|<\|start\|>assistant"
    r'|<\|open\|>message role="assistant"<\|sep\|>'
)
ENDS = r"<\|im_end\|>|<｜end▁of▁sentence｜>|<\|start\|>|<\|close\|>message"


def render(*options: str, text: str = json.dumps(MESSAGES)) -> Any:
    return CliRunner().invoke(main, ["render", *options], input=text)


@pytest.mark.parametrize("family", [family.name for family in FAMILIES])
def test_every_family_renders_and_its_calls_are_parsed_back(family: str) -> None:
    result = render("--family", family)
    assert result.exit_code == 0, result.output
    turn = re.split(BEGINS, result.stdout)[1]
    turn = re.split(ENDS, turn)[0]
    parsed = CliRunner().invoke(main, ["parse", "--family", family, "--json"], input=turn)
    (call,) = json.loads(parsed.stdout)["tool_calls"]
    assert call["function"] == {"name": "f", "arguments": call["function"]["arguments"]}
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}


def test_a_template_and_tools_of_ones_own(tmp_path: Path) -> None:
    template, tools = tmp_path / "t.jinja", tmp_path / "tools.json"
    template.write_text("{{ tools | tojson }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}")
    tools.write_text('[{"type": "function", "function": {"name": "f"}}]')
    result = render(
        "--template", str(template), "--tools", str(tools), "--json", text='[{"role":"user","content":"x"}]'
    )
    shown = json.loads(result.stdout)
    assert shown["text"].endswith("[user]x")
    assert '"name": "f"' in shown["text"]
    assert shown["family"] == "generic"


@pytest.mark.parametrize("text", ["nonsense", '[{"content": "x"}]', '[{"role": "robot"}]', "[1]"])
def test_what_is_no_conversation_is_refused(text: str) -> None:
    result = render("--family", "qwen3", text=text)
    assert result.exit_code == 1
    assert "no JSON list of messages" in result.output


def test_something_has_to_say_how() -> None:
    assert render().exit_code == 2
