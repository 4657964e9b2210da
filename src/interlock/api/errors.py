"""``InterlockError`` to HTTP, in the shape that clients of a path read.

The status is the catalog's, but for Anthropic's paths, where a status and an error type go together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from interlock.errors import InterlockError, Problem

ANTHROPIC_PATH = "/v1/messages"
OLLAMA_PATH = "/api/"
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
        body["problems"] = [problem_object(problem) for problem in error.problems]
    if error.hint:
        body["hint"] = error.hint
    return {"error": body}


def anthropic_error_body(error: InterlockError) -> dict[str, Any]:
    """The object Anthropic's clients read. What it has no place for is in the message, and beside it."""
    details = error_body(error)["error"]
    where = f"{error.param}: " if error.param and error.param not in error.message else ""
    hint = f" ({error.hint})" if error.hint else ""
    _, kind = _anthropic_kind(error)
    kept = {
        key: value for key, value in details.items() if key in ("param", "code", "problems", "hint") and value
    }
    return {"type": "error", "error": {"type": kind, "message": f"{where}{error.message}{hint}", **kept}}


def _anthropic_kind(error: InterlockError) -> tuple[int, str]:
    status = error.entry.status
    return _ANTHROPIC_KINDS.get(status, (status, "api_error" if status >= 500 else "invalid_request_error"))


_ANTHROPIC_KINDS: Mapping[int, tuple[int, str]] = {
    401: (401, "authentication_error"),
    404: (404, "not_found_error"),
    408: (504, "timeout_error"),
    413: (413, "request_too_large"),
    429: (529, "overloaded_error"),
    503: (529, "overloaded_error"),
}


def ollama_error_body(error: InterlockError) -> dict[str, Any]:
    """The object Ollama's clients read: a text, here with everything else beside it."""
    hint = f" ({error.hint})" if error.hint else ""
    return {**error_body(error)["error"], "error": f"{error.message}{hint}"}


def error_response(error: InterlockError, path: str = "") -> Response:
    """The answer for clients of ``path``. ``x-should-retry`` is what the official clients obey; without it
    they retry every 5xx."""
    status, body = error.entry.status, error_body
    if path.startswith(ANTHROPIC_PATH):
        (status, _), body = _anthropic_kind(error), anthropic_error_body
    elif path.startswith(OLLAMA_PATH):
        body = ollama_error_body
    headers = {"x-should-retry": "true" if error.entry.retryable else "false"}
    if error.code in RETRY_AFTER_S:
        headers["retry-after"] = str(RETRY_AFTER_S[error.code])
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return json_response(body(error), status=status, headers=headers)


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(value), status, headers=dict(headers or {}), media_type="application/json"
    )


def internal_error() -> InterlockError:
    """What a client is told about a fault; the log has the traceback."""
    return InterlockError("internal_error", "the server failed on this request; its log has the details")


def problem_object(problem: Problem) -> dict[str, str]:
    """A problem as clients read it."""
    body = {"keyword": problem.keyword, "pointer": problem.pointer, "reason": problem.reason}
    return body if problem.tool is None else {**body, "tool": problem.tool}
