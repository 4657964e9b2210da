"""All errors a client can see, one entry each.

``InterlockError`` is the only exception that crosses a border of the program. Its ``code`` names an entry
of ``CATALOG``, which fixes the HTTP status, OpenAI's error type and whether a retry can help.
``api/errors.py`` renders it per dialect; ``docs/errors.md`` is generated from the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """status: HTTP status. type: OpenAI's ``error.type``. retryable: the same request may succeed later."""

    status: int
    type: str
    retryable: bool
    meaning: str


_REQUEST = "invalid_request_error"

CATALOG: dict[str, ErrorEntry] = {
    # the request is wrong
    "invalid_json": ErrorEntry(400, _REQUEST, False, "the body is not a JSON object"),
    "invalid_value": ErrorEntry(400, _REQUEST, False, "a field has a wrong type or value"),
    "missing_field": ErrorEntry(400, _REQUEST, False, "a required field is absent"),
    "unsupported_parameter": ErrorEntry(
        400, _REQUEST, False, "a field would change the output and is not supported"
    ),
    "conflicting_parameters": ErrorEntry(400, _REQUEST, False, "two fields contradict each other"),
    "invalid_messages": ErrorEntry(400, _REQUEST, False, "the conversation breaks a rule"),
    "invalid_tools": ErrorEntry(400, _REQUEST, False, "a tool declaration or tool choice is wrong"),
    "invalid_schema": ErrorEntry(400, _REQUEST, False, "a JSON Schema is malformed or cannot be enforced"),
    "invalid_regex": ErrorEntry(
        400, _REQUEST, False, "a regular expression is malformed or cannot be enforced"
    ),
    "invalid_grammar": ErrorEntry(
        400, _REQUEST, False, "a grammar is malformed, matches nothing or cannot be enforced"
    ),
    "constraint_too_complex": ErrorEntry(
        400, _REQUEST, False, "a constraint exceeds the limits of size or compile time"
    ),
    "context_length_exceeded": ErrorEntry(400, _REQUEST, False, "prompt and output do not fit the context"),
    "missing_extra": ErrorEntry(400, _REQUEST, False, "an optional part is not installed"),
    "invalid_api_key": ErrorEntry(401, "authentication_error", False, "no or wrong API key"),
    "model_not_found": ErrorEntry(404, _REQUEST, False, "the model is not served here"),
    "not_found": ErrorEntry(404, _REQUEST, False, "no such path"),
    "method_not_allowed": ErrorEntry(405, _REQUEST, False, "the path exists with another method"),
    "request_timeout": ErrorEntry(408, "timeout_error", True, "the request ran past its time limit"),
    "body_too_large": ErrorEntry(413, _REQUEST, False, "the body is larger than the server's limit"),
    "headers_too_large": ErrorEntry(431, _REQUEST, False, "the request has more headers than the server takes"),
    "unsupported_media_type": ErrorEntry(415, _REQUEST, False, "the body is not application/json"),
    # the server is busy or changing state
    "overloaded": ErrorEntry(429, "overloaded_error", True, "too many requests are waiting"),
    "not_ready": ErrorEntry(503, "unavailable_error", True, "the model is still loading or restarting"),
    "shutting_down": ErrorEntry(503, "unavailable_error", True, "the server is stopping"),
    # something broke while this request ran; other requests go on
    "worker_died": ErrorEntry(500, "server_error", True, "the model worker stopped; it is being restarted"),
    "matcher_failed": ErrorEntry(500, "server_error", False, "the grammar engine failed in this request"),
    "no_token_allowed": ErrorEntry(
        500, "server_error", False, "the constraint and the request's limits left no token to choose"
    ),
    "sampling_failed": ErrorEntry(500, "server_error", False, "the logits of this request were unusable"),
    "forward_failed": ErrorEntry(500, "server_error", True, "the model's forward pass failed for this request"),
    "invalid_model_output": ErrorEntry(500, "server_error", True, "the model's text broke its family's format"),
    "compile_failed": ErrorEntry(500, "server_error", True, "the compile pool failed on this constraint"),
    "internal_error": ErrorEntry(500, "server_error", False, "a fault of the server"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a schema, grammar or tool.

    keyword: schema keyword, ``""`` if none. pointer: JSON Pointer (RFC 6901) into the schema.
    tool: the tool's name where the schema belongs to one.
    """

    reason: str
    keyword: str = ""
    pointer: str = ""
    tool: str | None = None


class InterlockError(Exception):
    """An error with an entry in ``CATALOG``.

    message: one or two sentences for a person. param: the request field, dotted path with indices
    (``messages[2].content``). problems: all findings, where there can be several.
    hint: what to do about it.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        problems: tuple[Problem, ...] = (),
        hint: str | None = None,
    ) -> None:
        if code not in CATALOG:
            raise ValueError(f"unknown error code {code!r}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.problems = problems
        self.hint = hint

    @property
    def entry(self) -> ErrorEntry:
        return CATALOG[self.code]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InterlockError) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"InterlockError({self.code!r}, {self.message!r}, param={self.param!r})"

    def _key(self) -> tuple[object, ...]:
        return (self.code, self.message, self.param, self.problems, self.hint)


def together(errors: Sequence[InterlockError]) -> InterlockError:
    """One error with the problems of all of ``errors`` (at least one); the rest of it is the first one's."""
    first = errors[0]
    problems = tuple(dict.fromkeys(problem for error in errors for problem in error.problems))
    more = len(errors) - 1
    names = ", ".join(
        dict.fromkeys(f"'{problem.tool}'" for error in errors[1:] for problem in error.problems if problem.tool)
    )
    also = f" Refused as well: {names or f'{more} more'}." if more else ""
    return InterlockError(
        first.code, first.message + also, param=first.param, problems=problems, hint=first.hint
    )
