"""Records as JSON."""

from __future__ import annotations

import json
import logging
import sys

from interlock import log


def record(message: str, *arguments: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("interlock.x", logging.WARNING, __file__, 1, message, arguments, None)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_a_record_is_one_line_with_its_fields() -> None:
    made = record("%s\nline", "é", **log.fields(request_id="r", seconds=0.5))
    text = log.JsonFormatter().format(made)
    assert "\n" not in text
    data = json.loads(text)
    assert (data["level"], data["logger"], data["message"]) == ("warning", "interlock.x", "é\nline")
    assert (data["request_id"], data["seconds"]) == ("r", 0.5)
    assert data["time"].endswith("Z")


def test_an_exception_is_in_it() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        data = json.loads(log.JsonFormatter().format(record("failed", exc_info=sys.exc_info())))
    assert "ValueError: no" in data["exception"]
