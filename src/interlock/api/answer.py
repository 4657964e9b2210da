"""An answer put together from its events, for endpoints that give it out as one object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from interlock.api.context import Generation
from interlock.api.errors import problem_object
from interlock.core.events import (
    Event,
    ReasoningDelta,
    ScoredToken,
    TextDelta,
    TokenLogprobs,
    TokenTraced,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
    Validity,
)
from interlock.core.timings import RequestTimings


@dataclass(slots=True)
class AnswerCall:
    """arguments: pieces of JSON text. complete: together they are one object."""

    id: str
    name: str
    arguments: list[str] = field(default_factory=list)
    complete: bool = False

    @property
    def arguments_text(self) -> str:
        return "".join(self.arguments)


@dataclass(slots=True)
class Answer:
    """An answer so far. tokens: scored ones, where scores were asked for. trace: of
    its tokens, where that was asked for."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls_by_index: dict[int, AnswerCall] = field(default_factory=dict)
    tokens: list[ScoredToken] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)

    def add(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self.texts.append(text)
            case ReasoningDelta(text=text):
                self.thoughts.append(text)
            case TokenLogprobs(tokens=tokens):
                self.tokens.extend(tokens)
            case TokenTraced():
                self.trace.append(trace_object(event))
            case ToolCallStart(index=index, id=call_id, name=name):
                self.calls_by_index[index] = AnswerCall(call_id, name)
            case ToolCallArguments(index=index, text=text):
                self.calls_by_index[index].arguments.append(text)
            case ToolCallEnd(index=index):
                self.calls_by_index[index].complete = True

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def reasoning(self) -> str:
        return "".join(self.thoughts)

    @property
    def calls(self) -> list[AnswerCall]:
        return [call for _, call in sorted(self.calls_by_index.items())]

    def cut_calls(self) -> list[int]:
        """Indices of calls that began and did not end."""
        return [index for index, call in self.calls_by_index.items() if not call.complete]


def report(
    generation: Generation,
    cut_calls: list[int],
    validity: Validity | None = None,
    timings: RequestTimings | None = None,
    trace: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The extension object ``interlock``; empty when there is nothing to say.

    notes: how the request was read. tools: that calls were held to the grammar, and by which rule.
    unenforced: keywords of relaxed schemas that were left out. For the others see ``remarks``.
    """
    out: dict[str, Any] = {}
    if generation.notes:
        out["notes"] = list(generation.notes)
    if generation.tools.constrained:
        out["tools"] = {"constrained": True, "reason": generation.tools.constrained_reason}
    if validity is not None:
        out["unenforced"] = [problem_object(problem) for problem in generation.unenforced]
    out.update(remarks(cut_calls, validity, timings, trace).get("interlock", {}))
    return {"interlock": out} if out else {}


def remarks(
    cut_calls: list[int],
    validity: Validity | None,
    timings: RequestTimings | None = None,
    trace: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The part of ``interlock`` that is about one answer; empty when there is nothing to say.

    incomplete_tool_calls: indices of calls that were cut off; their arguments are no JSON.
    valid: of an answer to relaxed schemas, what a validator says of it, null where it cannot tell.
    valid_tool_calls: the same of each call. timings, trace: where asked for; see the page on traces.
    """
    out: dict[str, Any] = {}
    if cut_calls:
        out["incomplete_tool_calls"] = cut_calls
    if validity is not None:
        out["valid"] = validity.valid
        if validity.calls:
            out["valid_tool_calls"] = list(validity.calls)
    if timings is not None:
        out["timings"] = asdict(timings)
    if trace:
        out["trace"] = list(trace)
    return {"interlock": out} if out else {}


def trace_object(event: TokenTraced) -> dict[str, Any]:
    """``interlock.trace[]``, as docs/trace.md has it."""
    trace = event.trace

    def token(token_id: int, probability: float) -> dict[str, Any]:
        data = event.spellings[token_id]
        return {
            "id": token_id,
            "token": data.decode(errors="replace"),
            "bytes": list(data),
            "probability": probability,
        }

    return {
        **token(trace.token_id, trace.probability),
        "source": trace.source,
        "wanted": token(trace.wanted, trace.wanted_probability),
        "num_allowed": trace.num_allowed,
        "allowed": [token(token_id, probability) for token_id, probability in trace.allowed],
        "removed": trace.removed,
    }


def whole_validity(found: Iterable[Validity | None]) -> Validity | None:
    """Of several answers to one request; of the only one as it is."""
    known = [validity for validity in found if validity is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Validity(answer=tuple(validity.valid for validity in known))
