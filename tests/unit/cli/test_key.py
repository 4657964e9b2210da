"""``interlock key``: what it writes is what a server reads."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlock.cli.main import main
from interlock.settings.keys import hash_of, read_hashes


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["key", *map(str, arguments)])


def made(path: Path, label: str = "") -> str:
    result = run("new", "--file", path, *(["--label", label] if label else []))
    assert result.exit_code == 0, result.output
    return result.output.split()[-1]


def test_alone_it_shows_a_key_and_its_line() -> None:
    key, line = (text.split()[-1] for text in run().output.splitlines())
    assert line == hash_of(key)


def test_a_file_grows_and_shrinks_and_keeps_what_people_wrote(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# by hand\n{hash_of('old')}")
    first, second = made(path, "agents"), made(path)
    assert read_hashes(path) == (hash_of("old"), hash_of(first), hash_of(second))
    assert "agents" in run("list", "--file", path).output
    assert run("remove", "agents", "--file", path).exit_code == 0
    assert run("remove", hash_of(second)[7:19], "--file", path).exit_code == 0
    assert read_hashes(path) == (hash_of("old"),)
    assert path.read_text().startswith("# by hand\n")


def test_a_new_file_is_for_its_owner_alone_and_holds_no_key(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    key = made(path, "a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key not in path.read_text()
    assert key not in run("list", "--file", path).output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["remove", "nobody"], "no key like"),
        (["remove", "sha"], "no key like"),
        (["remove", "twice"], "2 keys like"),
        (["new", "--label", "once"], "already"),
    ],
)
def test_what_is_not_clear_changes_nothing(tmp_path: Path, arguments: list[str], told: str) -> None:
    path = tmp_path / "keys"
    lines = [f"{hash_of(name)}  # {label}" for name, label in (("a", "twice"), ("b", "twice"), ("c", "once"))]
    path.write_text("\n".join(lines))
    result = run(*arguments, "--file", path)
    assert result.exit_code == 1
    assert told in result.output
    assert path.read_text() == "\n".join(lines)


def test_the_last_key_stays(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    made(path, "only")
    result = run("remove", "only", "--file", path)
    assert result.exit_code == 1
    assert "does not start with none" in result.output
    assert len(read_hashes(path)) == 1


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    result = run("list", "--file", tmp_path / "none")
    assert result.exit_code == 1
    assert "cannot be read" in result.output
