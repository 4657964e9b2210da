"""``InterlockError`` to HTTP: status, OpenAI's error body, headers. The status is the catalog's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from interlock.errors import InterlockError, Problem

RETRY_AFTER_S: Mapping[str, int] = {"overloaded": 1, "not_ready": 5, "shutting_down": 5}


def error_body(error: InterlockError) -> dict[str, Any]:
    """The object OpenAI's clients read, with ``problems`` and ``hint`` where there are any."""
    body: dict[str, Any] = {
        "message": error.message,
        "type": error.entry.type,
        "param": error.param,
        "code": error.code,
    }
    if error.problems:
        body["problems"] = [_problem(problem) for problem in error.problems]
    if error.hint:
        body["hint"] = error.hint
    return {"error": body}


def error_response(error: InterlockError) -> Response:
    """``x-should-retry`` is what OpenAI's clients obey; without it they retry every 5xx."""
    headers = {"x-should-retry": "true" if error.entry.retryable else "false"}
    if error.code in RETRY_AFTER_S:
        headers["retry-after"] = str(RETRY_AFTER_S[error.code])
    if error.entry.status == 401:
        headers["www-authenticate"] = "Bearer"
    return json_response(error_body(error), status=error.entry.status, headers=headers)


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(value), status, headers=dict(headers or {}), media_type="application/json"
    )


def internal_error() -> InterlockError:
    """What a client is told about a fault; the log has the traceback."""
    return InterlockError("internal_error", "the server failed on this request; its log has the details")


def _problem(problem: Problem) -> dict[str, str]:
    body = {"keyword": problem.keyword, "pointer": problem.pointer, "reason": problem.reason}
    return body if problem.tool is None else {**body, "tool": problem.tool}
