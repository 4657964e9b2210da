"""Logging set-up: one line per record on standard error."""

from __future__ import annotations

import logging
import sys

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def configure(level: str = "info") -> None:
    """Send ``interlock`` and warnings of libraries to standard error. Call once per process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("interlock").setLevel(level.upper())


def get(name: str) -> logging.Logger:
    """The logger of a module: ``get(__name__)``."""
    return logging.getLogger(name)
