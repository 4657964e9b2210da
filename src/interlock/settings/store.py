"""The settings of all models in one JSON file, replaced as a whole at each change."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from interlock.errors import InterlockError
from interlock.settings.model import ModelSettings

VERSION = 1


class SettingsStore:
    """path: the file, made with its folder at the first change; ``None`` keeps settings in memory only.

    Models that are not served now keep what is set for them. Raises ``invalid_value``, naming file, model and key,
    for a file that cannot be read as settings: a server does not start with policies other than those written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._models: dict[str, ModelSettings] = {} if path is None else _read(path)

    def get(self, model: str) -> ModelSettings:
        return self._models.get(model, ModelSettings())

    def put(self, model: str, settings: ModelSettings) -> None:
        """Raises ``OSError`` where the file cannot be written; then nothing has changed."""
        models = {**self._models, model: settings}
        if self._path is not None:
            _write(self._path, models)
        self._models = models


def _read(path: Path) -> dict[str, ModelSettings]:
    try:
        data = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise _unreadable(path, str(error)) from error
    match data:
        case {"version": int(version)} if version != VERSION:
            raise _unreadable(path, f"version {version} is not known here, only {VERSION}")
        case {"version": int(), "models": dict(models)}:
            return {name: _settings(path, name, value) for name, value in models.items()}
    raise _unreadable(path, "it is not an object with version and models")


def _settings(path: Path, name: str, value: Any) -> ModelSettings:
    if not isinstance(value, dict):
        raise _unreadable(path, f"{name}: not an object")
    try:
        return ModelSettings().changed(value)
    except InterlockError as error:
        raise _unreadable(path, f"{name}: {error.message}", error.param) from error


def _unreadable(path: Path, reason: str, param: str | None = None) -> InterlockError:
    return InterlockError(
        "invalid_value",
        f"the settings in {path} cannot be used: {reason}",
        param=param,
        hint="Correct the file, or move it away to start without settings.",
    )


def _write(path: Path, models: dict[str, ModelSettings]) -> None:
    """A reader sees the old file or the new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {
        name: {key: value for key, value in settings.to_json().items() if value is not None}
        for name, settings in models.items()
    }
    text = msgspec.json.format(msgspec.json.encode({"version": VERSION, "models": stored}), indent=2)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
