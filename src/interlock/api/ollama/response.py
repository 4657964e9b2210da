"""Events of a generation to Ollama's objects: one, or one a line. Calls are given out whole."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from interlock import log
from interlock.api.answer import report
from interlock.api.context import Generation
from interlock.api.endpoint import collect
from interlock.api.errors import internal_error, ollama_error_body
from interlock.core.events import (
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    ScoredToken,
    TextDelta,
    TokenLogprobs,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.errors import InterlockError
from interlock.serving.answer import AnswerCall

_LOG = log.get(__name__)

Kind = Literal["chat", "generate"]


@dataclass(slots=True)
class OllamaHead:
    """What the objects of one answer have in common. loads: see ``OllamaCall``. started: for durations, on the
    monotonic clock."""

    kind: Kind
    model: str
    loads: bool = False
    started: float = field(default_factory=time.monotonic)

    def object(
        self,
        text: str = "",
        thinking: str = "",
        calls: Mapping[int, AnswerCall] | None = None,
        tokens: list[ScoredToken] | None = None,
    ) -> dict[str, Any]:
        """calls: by their place among the calls of the answer."""
        out: dict[str, Any] = {
            "model": self.model,
            "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "done": False,
        }
        extra: dict[str, Any] = {"thinking": thinking} if thinking else {}
        if calls:
            extra["tool_calls"] = [_call(index, call) for index, call in calls.items()]
        if self.kind == "chat":
            out["message"] = {"role": "assistant", "content": text, **extra}
        else:
            out |= {"response": text, **extra}
        if tokens:
            out["logprobs"] = [_scored(token) for token in tokens]
        return out

    def ending(self, finished: Finished, generation: Generation, cut_calls: list[int]) -> dict[str, Any]:
        """Raises ``shutting_down`` for an answer that the server gave up."""
        if finished.reason == "abort":
            raise InterlockError("shutting_down", "the server ended the request")
        if self.loads:
            return {"done": True, "done_reason": "load"}
        return {
            "done": True,
            "done_reason": "length" if finished.reason == "length" else "stop",
            "total_duration": _nanoseconds(time.monotonic() - self.started),
            "prompt_eval_count": finished.usage.prompt_tokens,
            "prompt_eval_duration": _nanoseconds(generation.timings.prefill_s),
            "eval_count": finished.usage.completion_tokens,
            "eval_duration": _nanoseconds(generation.timings.decode_s),
            **report(generation, cut_calls, finished.validity, finished.timings),
        }


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


async def complete(events: AsyncIterator[Event], *, generation: Generation, head: OllamaHead) -> dict[str, Any]:
    """The whole object. Raises the error of a ``Failed``."""
    answer, finished = await collect(events)
    if head.loads:
        return {**head.object(), **head.ending(finished, generation, [])}
    calls = {index: call for index, call in enumerate(answer.calls) if call.complete}
    return {
        **head.object(answer.text, answer.reasoning, calls, answer.tokens),
        **head.ending(finished, generation, answer.cut_calls()),
    }


async def stream_lines(
    events: AsyncIterator[Event], *, generation: Generation, head: OllamaHead
) -> AsyncGenerator[bytes, None]:
    """Encoded lines; the last one has ``done: true`` or an ``error``."""
    open_calls: dict[int, AnswerCall] = {}
    tokens: list[ScoredToken] = []
    try:
        async for event in events:
            match event:
                case Failed(error=error):
                    raise error
                case Finished():
                    yield _line({**head.object(), **head.ending(event, generation, list(open_calls))})
                case _ if head.loads:
                    continue
                case TokenLogprobs(tokens=some):
                    tokens.extend(some)
                case _:
                    for payload in _payloads(event, head, open_calls, tokens):
                        yield _line(payload)
    except InterlockError as error:
        yield _line(ollama_error_body(error))
    except Exception:  # noqa: BLE001  the process edge: a stream that began must end with a reason
        _LOG.exception("an answer could not be written")
        yield _line(ollama_error_body(internal_error()))


def _payloads(
    event: Event, head: OllamaHead, open_calls: dict[int, AnswerCall], tokens: list[ScoredToken]
) -> Iterator[dict[str, Any]]:
    match event:
        case TextDelta(text=text):
            yield head.object(text, tokens=tokens.copy())
            tokens.clear()
        case ReasoningDelta(text=text):
            yield head.object(thinking=text)
        case ToolCallStart(index=index, id=call_id, name=name):
            open_calls[index] = AnswerCall(call_id, name)
        case ToolCallArguments(index=index, text=text):
            open_calls[index].arguments.append(text)
        case ToolCallEnd(index=index):
            yield head.object(calls={index: open_calls.pop(index)})


def _call(index: int, call: AnswerCall) -> dict[str, Any]:
    arguments = msgspec.Raw(call.arguments_text.encode() or b"{}")  # as the model spelt them
    return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": arguments}}


def _scored(token: ScoredToken) -> dict[str, Any]:
    return {
        "token": token.data.decode(errors="replace"),
        "logprob": token.logprob,
        "bytes": list(token.data),
        "top_logprobs": [
            {"token": data.decode(errors="replace"), "logprob": logprob, "bytes": list(data)}
            for _, data, logprob in token.top
        ],
    }


def _line(payload: dict[str, Any]) -> bytes:
    return msgspec.json.encode(payload) + b"\n"
