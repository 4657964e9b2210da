"""The only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

VARIABLES: dict[str, str] = {
    "INTERLOCK_CACHE": "folder for model files (default: the platform's cache folder)",
    "INTERLOCK_API_KEY": "API key that clients must send; several separated by commas",
    "INTERLOCK_ADMIN_KEY": "key of the admin API; several separated by commas",
    "INTERLOCK_VLLM_API_KEY": "key that vLLM asks for, with --engine vllm",
    "INTERLOCK_CONFIG": "folder of the settings file (default: the platform's config folder)",
    "INTERLOCK_LOG_LEVEL": "debug, info, warning or error",
}

_SPINS = "100000"
"""Rounds of a loop, some 2 ms, that a thread of libgomp waits for others before it sleeps; by itself 300,000. Each sleep costs the
pass some microseconds, and lets another process in; each round takes a core from one that could use it."""


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Folder for model files; not created here."""
    value = environ.get("INTERLOCK_CACHE")
    return Path(value).expanduser() if value else Path(platformdirs.user_cache_dir("interlock"))


def api_keys(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """API keys, blanks dropped."""
    return _keys(environ.get("INTERLOCK_API_KEY", ""))


def admin_keys(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Admin keys, blanks dropped."""
    return _keys(environ.get("INTERLOCK_ADMIN_KEY", ""))


def vllm_api_key(environ: Mapping[str, str] = os.environ) -> str | None:
    """The key of the vLLM servers behind us."""
    return environ.get("INTERLOCK_VLLM_API_KEY") or None


def settings_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The file of per-model settings; not created here."""
    value = environ.get("INTERLOCK_CONFIG")
    folder = Path(value).expanduser() if value else Path(platformdirs.user_config_dir("interlock"))
    return folder / "settings.json"


def of_a_worker(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a model worker: this one, with short waits between its threads where nothing else is said."""
    if "OMP_WAIT_POLICY" in environ:
        return dict(environ)
    return {"GOMP_SPINCOUNT": _SPINS, **environ}


def _keys(text: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in text.split(",") if key.strip())


def log_level(environ: Mapping[str, str] = os.environ) -> str:
    """Log level. Raises ``ValueError`` for a word that is none."""
    level = environ.get("INTERLOCK_LOG_LEVEL", "info").lower()
    if level not in ("debug", "info", "warning", "error"):
        raise ValueError(f"INTERLOCK_LOG_LEVEL={level!r}: use debug, info, warning or error")
    return level
