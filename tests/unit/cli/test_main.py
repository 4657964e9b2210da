"""The command as a whole: help that teaches, completion, and errors that say what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import shell_complete
from click.testing import CliRunner, Result

from interlock.cli.main import COMMANDS, EXAMPLES, main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def find(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def with_subcommands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from with_subcommands(f"{name} {inner.name}", inner)


EACH = [pair for name in COMMANDS for pair in with_subcommands(name, find(name))]


@pytest.mark.parametrize(("name", "command"), EACH, ids=[name for name, _ in EACH])
def test_every_command_and_every_option_says_what_it_is_for(name: str, command: click.Command) -> None:
    assert command.help, name
    silent = [option.opts for option in command.params if isinstance(option, click.Option) and not option.help]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples_whose_options_exist(name: str) -> None:
    shown = run(name, "--help")
    assert shown.exit_code == 0
    options = {
        option
        for inner, command in EACH
        if inner.split()[0] == name
        for one in command.params
        for option in one.opts
    }
    for example in EXAMPLES[name]:
        assert example in shown.output
        program, command, *rest = shlex.split(example.partition(" <")[0])
        assert (program, command) == ("interlock", name)
        assert {word for word in rest if word.startswith("--")} <= options


def test_the_help_of_the_whole_says_where_to_start() -> None:
    shown = run("--help").output
    assert "interlock demo" in shown
    assert all(name in shown for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "position", "expected"),
    [
        ("interlock se", 1, "serve"),
        ("interlock serve --load on", 3, "on-demand"),
        ("interlock serve --unl", 2, "--unload-after"),
        ("interlock key re", 2, "remove"),
    ],
)
def test_the_shell_completes(monkeypatch, capsys, words: str, position: int, expected: str) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(position))
    assert shell_complete(main, {}, "interlock", "_INTERLOCK_COMPLETE", "bash_complete") == 0
    assert f"plain,{expected}" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["srve"], "Did you mean 'serve'?"),
        (["banana"], "No such command"),
        (["serve"], "interlock serve MODEL"),
        (["serve", "none.gguf"], "give a .gguf file"),
        (["serve", "--model", "nameless"], "NAME=MODEL"),
        (["serve", "--model", "a=none.gguf"], "there is no model at none.gguf"),
        (["serve", "demo", "--allow-origin", "app.example.com"], "https://app.example.com"),
        (["serve", "demo", "--ssl-certfile", "none.pem"], "does not exist"),
        (["serve", "demo", "--speculative-config", "{"], "JSON"),
        (["check", "none.json"], "does not exist"),
    ],
)
def test_an_error_says_what_to_do_next(arguments: list[str], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code != 0
    assert told in result.output
    assert "Traceback" not in result.output


def test_a_key_file_is_read_before_anything_is_loaded(tmp_path: Path) -> None:
    keys, model = tmp_path / "keys", tmp_path / "m.gguf"
    keys.write_text("no key\n")
    model.write_bytes(b"GGUF")
    result = run("serve", model, "--api-key-file", keys)
    assert result.exit_code == 1
    assert "not the hash of a key" in result.output
