"""The only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

VARIABLES: dict[str, str] = {
    "INTERLOCK_CACHE": "folder for model files (default: the platform's cache folder)",
    "INTERLOCK_API_KEY": "API key that clients must send; several separated by commas",
    "INTERLOCK_LOG_LEVEL": "debug, info, warning or error",
}


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Folder for model files; not created here."""
    value = environ.get("INTERLOCK_CACHE")
    return Path(value).expanduser() if value else Path(platformdirs.user_cache_dir("interlock"))


def api_keys(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """API keys, blanks dropped."""
    return tuple(key.strip() for key in environ.get("INTERLOCK_API_KEY", "").split(",") if key.strip())


def log_level(environ: Mapping[str, str] = os.environ) -> str:
    """Log level. Raises ``ValueError`` for a word that is none."""
    level = environ.get("INTERLOCK_LOG_LEVEL", "info").lower()
    if level not in ("debug", "info", "warning", "error"):
        raise ValueError(f"INTERLOCK_LOG_LEVEL={level!r}: use debug, info, warning or error")
    return level
