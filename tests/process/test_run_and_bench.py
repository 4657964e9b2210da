"""``interlock run`` and ``interlock bench`` as their user types them, on the embedded model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from interlock.cli.client import Answer, ChatClient
from interlock.cli.main import main
from interlock.config import EngineConfig, HttpConfig, LlamaCppConfig, ServerConfig
from interlock.launch import BackgroundServer

pytestmark = pytest.mark.model

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["n"],
}
TOOLS = [
    {"type": "function", "function": {"name": "pick", "description": "Pick a number", "parameters": SCHEMA}}
]


@pytest.fixture(scope="module")
def url(demo_model: Path) -> Iterator[str]:
    engine = EngineConfig(model=demo_model, slots=2, context_tokens=1024, llama_cpp=LlamaCppConfig(threads=1))
    server = BackgroundServer(
        ServerConfig(served_name="demo", engine=engine, http=HttpConfig(port=0, drain_s=1))
    )
    yield server.start()
    server.stop()


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def _file(folder: Path, value: Any) -> str:
    path = folder / "given.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def test_run_writes_a_document_of_the_schema(url: str, tmp_path: Path) -> None:
    result = _run("run", url, "Pick a number", "--schema", _file(tmp_path, SCHEMA), "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    jsonschema.validate(json.loads(answer["content"]), SCHEMA)
    assert (answer["finish_reason"], answer["problems"]) == ("stop", [])


def test_run_tells_the_servers_remarks(url: str, tmp_path: Path) -> None:
    result = _run("run", url, "Pick a number", "--tools", _file(tmp_path, TOOLS), "--served", "demo")
    assert "calls are held to their schemas: tool_choice" in result.stdout
    schema = _file(tmp_path, {**SCHEMA, "requird": ["n"]})
    answer = json.loads(_run("run", url, "Pick", "--schema", schema, "--json").stdout)
    assert "requird" in str(answer["interlock"]["notes"])
    assert "note: " in _run("run", url, "Pick", "--schema", schema).stdout
    unknown = _run("run", url, "Pick a number", "--served", "nobody")
    assert (unknown.exit_code, "this server has demo" in unknown.output) == (1, True)


def test_run_streams_tool_calls(url: str, tmp_path: Path) -> None:
    result = _run("run", url, "Pick a number", "--tools", _file(tmp_path, TOOLS))
    assert result.exit_code == 0, result.output
    assert 'pick {"n": ' in result.stdout
    assert "finish_reason tool_calls" in result.stdout


@pytest.mark.parametrize(
    ("option", "text", "shown"), [("--regex", "[ab]{3}", "tokens"), ("--grammar", 'start: "yes"', "yes")]
)
def test_run_holds_to_a_text_format(url: str, tmp_path: Path, option: str, text: str, shown: str) -> None:
    given = _file(tmp_path, text) if option == "--grammar" else text
    result = _run("run", url, "Answer", option, given)
    assert result.exit_code == 0, result.output
    assert shown in result.stdout


def test_run_says_that_an_answer_was_cut(url: str) -> None:
    result = _run("run", url, "Tell a long story", "--max-tokens", "2")
    assert result.exit_code == 1
    assert "try a larger --max-tokens" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--schema", '{"$ref": "http://other/schema"}'), "the remote schema"),
        (("--schema", "{"), "is not JSON"),
        (("--regex", "("), "invalid_regex"),
    ],
)
def test_run_says_what_is_wrong(url: str, tmp_path: Path, arguments: tuple[str, str], told: str) -> None:
    option, value = arguments
    result = _run("run", url, "Answer", option, _file(tmp_path, value) if option == "--schema" else value)
    assert result.exit_code != 0
    assert told in result.output


def test_run_saves_a_trace_that_is_shown(url: str, tmp_path: Path) -> None:
    saved = tmp_path / "trace.json"
    options = ["--schema", _file(tmp_path, SCHEMA), "--trace", str(saved)]
    assert _run("run", url, "Pick a number", *options).exit_code == 0
    shown = _run("trace", str(saved), "--tokens")
    assert shown.exit_code == 0, shown.output
    assert "taken away" in shown.output
    totals = json.loads(_run("trace", str(saved), "--json").stdout)
    assert totals["tokens"] == len(json.loads(saved.read_text())["trace"]) > 0
    assert 0 < totals["removed_mean"] <= 1


def test_what_is_no_trace_is_named(tmp_path: Path) -> None:
    assert "holds no trace" in _run("trace", _file(tmp_path, {"a": 1})).output


def test_run_takes_one_format() -> None:
    result = _run("run", "http://127.0.0.1:9", "Answer", "--regex", "a", "--grammar", __file__)
    assert "exclude each other" in result.output


def test_a_server_that_is_not_there_is_named() -> None:
    for arguments in (("run", "http://127.0.0.1:9", "Answer"), ("bench", "http://127.0.0.1:9")):
        result = _run(*arguments)
        assert (result.exit_code, "ConnectError" in result.output) == (1, True)
        assert "`interlock serve demo` starts one" in result.output


def test_bench_measures_each_workload_and_draws(url: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots are an extra")
    plot = tmp_path / "bench.svg"
    options = ["--concurrency", "1,2", "--requests", "2", "--max-tokens", "30", "--plot", str(plot), "--json"]
    result = _run("bench", url, *options)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [(row["workload"], row["concurrency"]) for row in rows] == [
        (workload, level) for workload in ("free", "schema", "tool") for level in (1, 2)
    ]
    assert all(row["valid"] + row["cut"] == 1 and row["tokens_per_s"] > 0 for row in rows)
    assert plot.read_text().lstrip().startswith("<?xml")


def test_an_answer_in_one_piece_equals_the_streamed_one(url: str) -> None:
    body = {"model": "demo", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "temperature": 0}
    streamed = Answer()
    with ChatClient(url) as client:
        whole = client.ask(body)
        deltas = list(client.stream(body, streamed))
    assert (whole.content, whole.finish_reason) == (streamed.content, "length")
    assert "".join(delta.text for delta in deltas) == whole.content
    assert whole.completion_tokens == streamed.completion_tokens == 8
