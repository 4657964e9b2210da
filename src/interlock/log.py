"""Logging set-up: one line per record on standard error, for people or as JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Literal

LogFormat = Literal["text", "json"]

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object per record: ``time`` (RFC 3339, UTC), ``level``, ``logger``, ``message``, ``exception`` where there
    is one, and what the record has under ``fields``."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        data: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            data["exception"] = self.formatException(record.exc_info)
        return json.dumps(data, ensure_ascii=False, default=str)


def configure(level: str = "info", format_: LogFormat = "text") -> None:
    """Send ``interlock`` and warnings of libraries to standard error. Call once per process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format_ == "json" else logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("interlock").setLevel(level.upper())


def current_format() -> LogFormat:
    """The format that ``configure`` set: for processes that this one starts."""
    handlers = logging.getLogger().handlers
    return "json" if handlers and isinstance(handlers[0].formatter, JsonFormatter) else "text"


def get(name: str) -> logging.Logger:
    """The logger of a module: ``get(__name__)``."""
    return logging.getLogger(name)


def fields(**values: Any) -> dict[str, Any]:
    """The argument ``extra`` of a record: what a program should find in it beside the message."""
    return {"fields": values}
