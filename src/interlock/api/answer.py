"""What answers say beside the answer itself, and scores and traces of their tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from interlock.api.context import Generation
from interlock.api.errors import problem_object
from interlock.core.engine import Enforcement
from interlock.core.events import (
    Event,
    PromptLogprobs,
    ScoredToken,
    TokenLogprobs,
    TokenTraced,
    Validity,
)
from interlock.core.timings import RequestTimings
from interlock.serving.answer import Answer


@dataclass(slots=True)
class ScoredAnswer(Answer):
    """An answer so far. tokens: scored ones, where scores were asked for. trace: of its tokens, where that was asked
    for. prompt: scores of the prompt's tokens."""

    tokens: list[ScoredToken] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)
    prompt: tuple[ScoredToken, ...] = ()

    def add(self, event: Event) -> None:
        match event:
            case TokenLogprobs(tokens=tokens):
                self.tokens.extend(tokens)
            case PromptLogprobs(tokens=tokens):
                self.prompt = tokens
            case TokenTraced():
                self.trace.append(trace_object(event))
            case _:
                Answer.add(self, event)


def report(
    generation: Generation,
    cut_calls: list[int],
    validity: Validity | None = None,
    timings: RequestTimings | None = None,
    trace: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The extension object ``interlock``; empty when there is nothing to say.

    notes: how the request was read. tools: that calls were held to the grammar, and by which rule.
    logprobs: which distribution log probabilities are of, where there are any. unenforced: keywords of relaxed schemas
    that were left out. enforced_by: see ``Enforcement``, where it is not Interlock alone. For the others see ``remarks``.
    """
    out: dict[str, Any] = {}
    if generation.notes:
        out["notes"] = list(generation.notes)
    if generation.tools.constrained:
        out["tools"] = {"constrained": True, "reason": generation.tools.constrained_reason}
    if generation.enforcement not in (None, Enforcement()):
        out["enforced_by"] = asdict(generation.enforcement)
    if generation.logprobs is not None:
        out["logprobs"] = generation.logprobs
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
