"""What a worker is told on its command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from interlock.config import EngineConfig
from interlock.log import LogFormat


class Startup(msgspec.Struct, frozen=True, kw_only=True):
    """endpoint: ZeroMQ address to connect to. The worker's standard input stays open while the parent
    lives; its end ends the worker."""

    endpoint: str
    log_level: str
    log_format: LogFormat = "text"
    config: EngineConfig


def encode_startup(startup: Startup) -> str:
    """As JSON text."""
    return msgspec.json.encode(startup, enc_hook=_encode_path).decode()


def decode_startup(text: str) -> Startup:
    """Inverse of ``encode_startup``. Raises ``msgspec.ValidationError`` for anything else."""
    return msgspec.json.decode(text, type=Startup, dec_hook=_decode_path)


def _encode_path(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be encoded")


def _decode_path(expected: type, value: Any) -> Any:
    if expected is Path:
        return Path(value)
    raise TypeError(f"{expected.__name__} cannot be decoded")
