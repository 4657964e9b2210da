"""The chat client of the commands that ask a server: ``demo``, ``run`` and ``bench``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
import jsonschema

TIMEOUT_S = 600.0


class AnswerError(Exception):
    """The server refused a request, ended a stream with an error, or could not be reached."""


@dataclass(slots=True)
class Answer:
    """What one answer has brought so far.

    tool_calls: name and text of the arguments of each. Times are seconds since the request was sent.
    """

    content: str = ""
    reasoning: str = ""
    tool_calls: list[dict[str, str]] = field(default_factory=list)
    finish_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    interlock: dict[str, Any] = field(default_factory=dict)
    trace: list[dict[str, Any]] = field(default_factory=list)
    chunks: int = 0
    first_s: float = 0.0
    total_s: float = 0.0

    @property
    def completion_tokens(self) -> int:
        return int(self.usage.get("completion_tokens", 0))


@dataclass(frozen=True, slots=True)
class Delta:
    """What one chunk of a stream adds. ``kind``: content, reasoning, call (a name) or arguments."""

    kind: str
    text: str


class ChatClient:
    """Chat completions of one server. To be closed.

    url: without ``/v1``. Raises ``AnswerError`` with the server's own words.
    """

    def __init__(self, url: str, api_key: str = "") -> None:
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(
            base_url=url.removesuffix("/").removesuffix("/v1"), headers=headers, timeout=TIMEOUT_S
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def models(self) -> list[str]:
        return [model["id"] for model in self._get("/v1/models")["data"]]

    def ask(self, body: dict[str, Any]) -> Answer:
        """The answer in one piece."""
        begin = time.perf_counter()
        try:
            response = self._http.post("/v1/chat/completions", json=body)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        answer = Answer(total_s=time.perf_counter() - begin)
        value = _read(response)
        choice = value["choices"][0]
        message = choice["message"]
        answer.content = message.get("content") or ""
        answer.reasoning = message.get("reasoning_content") or ""
        answer.tool_calls = [
            {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
            for call in message.get("tool_calls") or []
        ]
        answer.finish_reason = choice["finish_reason"]
        answer.usage, answer.interlock = value.get("usage") or {}, value.get("interlock") or {}
        return answer

    def stream(self, body: dict[str, Any], answer: Answer) -> Iterator[Delta]:
        """The parts of a streamed answer as they come; ``answer`` holds the whole when it has ended."""
        begin = time.perf_counter()
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        try:
            with self._http.stream("POST", "/v1/chat/completions", json=body) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    _read(response)
                for chunk in _events(response):
                    answer.first_s = answer.first_s or time.perf_counter() - begin
                    yield from _take(chunk, answer)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        finally:
            answer.total_s = time.perf_counter() - begin

    def _get(self, path: str) -> Any:
        try:
            return _read(self._http.get(path))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.HTTPError) -> AnswerError:
        url = str(self._http.base_url)
        return AnswerError(
            f"{type(error).__name__}: {error}\nIs a server running at {url}? `interlock serve demo` starts one."
        )


def validation_error(text: str, schema: Any) -> str:
    """Why ``text`` is not a document of ``schema``; empty if it is one. Judged by python-jsonschema, formats included."""
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        return str(error)
    return ""


def _read(response: httpx.Response) -> Any:
    try:
        value = response.json()
    except ValueError:
        value = {}
    if response.status_code != httpx.codes.OK:
        raise AnswerError(_words(value.get("error")) or f"status {response.status_code}: {response.text[:500]}")
    return value


def _words(error: Any) -> str:
    """An error body in one or more lines."""
    if not isinstance(error, dict):
        return str(error or "")
    lines = [f"{error.get('code')}: {error.get('message')}"]
    lines += [
        f"  {problem.get('pointer') or '/'} {problem.get('keyword', '')}: {problem.get('reason', '')}"
        for problem in error.get("problems") or ()
    ]
    return "\n".join(lines + ([str(error["hint"])] if error.get("hint") else []))


def _events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def _take(chunk: dict[str, Any], answer: Answer) -> Iterator[Delta]:
    if "error" in chunk:
        raise AnswerError(_words(chunk["error"]))
    answer.usage = chunk.get("usage") or answer.usage
    told = dict(chunk.get("interlock") or {})
    answer.trace += told.pop("trace", [])  # comes in parts
    answer.interlock.update(told)
    for choice in chunk["choices"]:
        answer.chunks += 1
        answer.finish_reason = choice["finish_reason"] or answer.finish_reason
        delta = choice["delta"]
        if text := delta.get("reasoning_content"):
            answer.reasoning += text
            yield Delta("reasoning", text)
        if text := delta.get("content"):
            answer.content += text
            yield Delta("content", text)
        for call in delta.get("tool_calls") or ():
            yield from _take_call(call, answer)


def _take_call(call: dict[str, Any], answer: Answer) -> Iterator[Delta]:
    function = call.get("function") or {}
    if function.get("name"):
        answer.tool_calls.append({"name": function["name"], "arguments": ""})
        yield Delta("call", function["name"])
    if text := function.get("arguments"):
        answer.tool_calls[call["index"]]["arguments"] += text
        yield Delta("arguments", text)
