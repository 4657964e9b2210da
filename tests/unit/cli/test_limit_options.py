"""The options of limits: what ``serve`` and ``check`` make of them."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from interlock.cli import check, options, serve
from interlock.cli.main import main
from interlock.config import CompileConfig, SchemaLimits

WIDE = {f"k{i}": {"const": i} for i in range(30)}
SCHEMA = {"anyOf": [{"properties": {name: value}, "required": [name]} for name, value in WIDE.items()]}


def compile_config(*given: str) -> CompileConfig:
    parameters = serve.command.make_context("serve", list(given)).params
    del parameters["model"]  # the command has it as an argument of its own
    return options.server_config("m", Path("m.gguf"), parameters).compile


def test_serve_passes_them_to_the_compile_pool() -> None:
    given = ["--schema-max-alternatives", "7", "--schema-max-work", "8", "--compile-timeout-s", "9.5"]
    assert compile_config(*given) == CompileConfig(
        timeout_s=9.5, schema_limits=SchemaLimits(max_alternatives=7, max_work=8)
    )


def test_their_defaults_are_those_of_the_configuration() -> None:
    assert compile_config() == CompileConfig()


@pytest.mark.parametrize("value", ["0", "-1", "many"])
@pytest.mark.parametrize("option", ["--schema-max-alternatives", "--schema-max-work", "--compile-timeout-s"])
def test_a_limit_that_is_no_positive_number_is_an_error_at_the_start(option: str, value: str) -> None:
    refused = CliRunner().invoke(main, ["serve", "m", option, value])
    assert refused.exit_code == 2
    assert f"Invalid value for '{option}'" in refused.output


@pytest.mark.parametrize(
    ("option", "value"), [("--schema-max-alternatives", "20"), ("--schema-max-work", "50")]
)
def test_check_has_those_of_schemas(tmp_path: Path, option: str, value: str) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    arguments = [str(tmp_path / "schema.json"), "--json"]
    assert json.loads(CliRunner().invoke(check.command, arguments).stdout)["compiled"]
    refused = CliRunner().invoke(check.command, [*arguments, option, value])
    assert refused.exit_code == 1
    (row,) = [row for row in json.loads(refused.stdout)["report"] if row["state"] == "refused"]
    assert f"more than {value}" in row["reason"]
    assert f"{option} raises the limit" in row["reason"]


def test_both_commands_describe_them_alike() -> None:
    def described(command: click.Command) -> dict[str, str]:
        records = [item.get_help_record(click.Context(command)) for item in command.params]
        return {name: text for name, text in filter(None, records) if name.startswith("--schema-max")}

    assert len(described(check.command)) == 2
    assert described(check.command) == described(serve.command)
