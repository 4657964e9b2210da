"""Settings of models: what is taken, what is refused by name, and a file that is never half written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import InterlockError
from interlock.settings.model import ModelSettings
from interlock.settings.store import SettingsStore


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nonsense", 1),
        ("open_objects", "yes"),
        ("tool_constraints", "some"),
        ("thinking_budget", -1),
        ("thinking_budget", True),
        ("max_tokens", 0),
        ("temperature", "hot"),
        ("grammar", " "),
        ("aliases", "one"),
        ("aliases", ["a", "a"]),
        ("aliases", [""]),
    ],
)
def test_a_bad_value_is_refused_with_its_key(key: str, value: Any) -> None:
    with pytest.raises(InterlockError) as caught:
        ModelSettings().changed({key: value})
    assert (caught.value.code, caught.value.param) == ("invalid_value", key)
    assert key in caught.value.message


def test_changes_leave_the_rest_and_null_clears() -> None:
    settings = ModelSettings().changed({"temperature": 1, "aliases": ["x"]})
    assert (settings.temperature, settings.aliases) == (1.0, ("x",))
    assert settings.changed({"temperature": None}) == ModelSettings(aliases=("x",))
    assert settings.changed({"reasoning_parser": ""}).reasoning_parser == ""


def test_what_is_put_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    settings = ModelSettings(reasoning_parser="", open_objects=False, aliases=("x",))
    SettingsStore(path).put("m", settings)
    assert SettingsStore(path).get("m") == settings
    assert SettingsStore(path).get("other") == ModelSettings()
    assert json.loads(path.read_text())["version"] == 1


def test_a_write_that_fails_changes_nothing_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.json"
    store = SettingsStore(path)
    store.put("m", ModelSettings(top_k=1))

    def full(_descriptor: int) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        store.put("m", ModelSettings(top_k=2))
    assert store.get("m").top_k == SettingsStore(path).get("m").top_k == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "truncated"),
        ("[]", "version and models"),
        ('{"version": 2, "models": {}}', "version 2"),
        ('{"version": 1, "models": {"m": 3}}', "m: not an object"),
        ('{"version": 1, "models": {"m": {"top_k": "x"}}}', "m: top_k"),
    ],
)
def test_a_file_that_is_no_settings_stops_the_start(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(InterlockError, match=reason) as caught:
        SettingsStore(path)
    assert str(path) in caught.value.message
