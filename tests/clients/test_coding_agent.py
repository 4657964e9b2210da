"""A coding agent from npm as the client: one task over several turns, each call carried out on the disk.

Needs node and ``npm install -g @qwen-code/qwen-code``. The agent is told of this machine's address only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlock.api.scripted import call, finish, text
from interlock.constraints.lowering import lower
from interlock.core.output_format import TextFormat
from interlock.core.request import GenerateRequest
from interlock.core.tools import ToolChoice, ToolContext
from interlock.families import registry
from interlock.families.wire.constrain import constrain

KEY = "test-key"
LIMIT_S = 150
TEXT = 'Hello "you"\n'
PROMPT = "Look around, then write a greeting to hello.txt."


@pytest.fixture(scope="module")
def agent() -> str:
    found = shutil.which("qwen")
    if found is None or shutil.which("node") is None:
        pytest.skip("no coding agent: install node and `npm install -g @qwen-code/qwen-code`")
    return found


def results(request: GenerateRequest) -> list[str]:
    return [message.content or "" for message in request.messages if message.role == "tool"]


def run(agent: str, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    home = folder / "home"
    (home / ".qwen").mkdir(parents=True)
    (home / ".qwen" / "settings.json").write_text(
        json.dumps({"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}})
    )
    work = folder / "work"
    work.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "scripted",
    }
    options = ["--auth-type", "openai", "--approval-mode", "yolo", "--output-format", "text"]
    return subprocess.run(
        [agent, *options, "--prompt", PROMPT],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@dataclass(frozen=True)
class Task:
    """What became of it. asked: the agent's requests."""

    done: subprocess.CompletedProcess[str]
    asked: list[GenerateRequest]
    written: Path


@pytest.fixture(scope="module")
def task(agent: str, scripted: Any, tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("agent")
    path = folder / "work" / "hello.txt"
    arguments = json.dumps({"file_path": str(path), "content": TEXT})
    turns = [
        [*call("list_directory", ['{"path": ', json.dumps(str(path.parent)), "}"]), *finish()],
        [*call("write_file", [arguments]), *finish()],
        text("The greeting ", "is written."),
    ]
    scripted.service.answer = lambda request: turns[len(results(request))]
    return Task(run(agent, scripted.url, folder), scripted.requests, path)


def test_a_task_of_three_turns(task: Task) -> None:
    assert task.done.returncode == 0, task.done.stderr
    assert "The greeting is written." in task.done.stdout
    assert task.written.read_text() == TEXT
    assert [len(results(request)) for request in task.asked] == [0, 1, 2]
    assert PROMPT in str(task.asked[0].messages)
    assert "hello.txt" in results(task.asked[-1])[-1]


@pytest.mark.parametrize("family", ["qwen3", "qwen3_coder", "gpt_oss"])
def test_the_tools_of_the_agent_can_all_be_held_to_their_schemas(task: Task, family: str) -> None:
    tools = tuple(task.asked[0].tools or ())
    assert {"write_file", "run_shell_command"} <= {tool.name for tool in tools}
    context = ToolContext(
        effective_tools=tools,
        callable_tools=tools,
        tool_choice=ToolChoice(mode="required"),
        constrained=True,
    )
    spec = constrain(registry.by_name(family), tools=context, output_format=TextFormat(), thinking="none")
    assert spec is not None
    assert lower(spec, {}).grammar
