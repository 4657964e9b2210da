"""What is said to vLLM and what it answers: token ids both ways, over either of its two endpoints.

``/inference/v1/generate`` speaks ids alone; it is there where vLLM was started with ``--enable-scale-out``.
``/v1/completions`` also takes ids and gives them back where it is asked to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest, TokenLogprob
from interlock.errors import InterlockError

Endpoint = Literal["/inference/v1/generate", "/v1/completions"]
GENERATE: Endpoint = "/inference/v1/generate"
COMPLETIONS: Endpoint = "/v1/completions"

_LARK_PIECES = re.compile(r'"(?:\\.|[^"\\])*"|/(?:\\.|[^/\\\n])+/|@user_\d+')
_TOKEN = re.compile(r"token_id:(\d+)")
_MAX_SEED = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What one event of a stream says. finish_reason: vLLM's word. num_cached_tokens: where it tells."""

    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: str | None = None
    num_cached_tokens: int | None = None


def request_body(endpoint: Endpoint, model: str, request: EngineRequest) -> dict[str, Any]:
    """The body of a streamed request."""
    sampling = _sampling(request)
    common: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    if endpoint == GENERATE:
        sampling["detokenize"] = False
        return common | {
            "request_id": request.request_id,
            "token_ids": list(request.prompt_ids),
            "sampling_params": sampling,
        }
    return (
        common
        | sampling
        | {
            "prompt": list(request.prompt_ids),
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
            "add_special_tokens": False,
        }
    )


def _sampling(request: EngineRequest) -> dict[str, Any]:
    """vLLM's defaults come from the model's folder, so everything is said."""
    params = request.sampling
    out: dict[str, Any] = {
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "min_p": params.min_p,
        "frequency_penalty": params.frequency_penalty,
        "presence_penalty": params.presence_penalty,
        "repetition_penalty": params.repetition_penalty,
        "max_tokens": request.max_tokens,
        "stop_token_ids": list(request.stop_ids),
    }
    if params.temperature > 0:
        out["seed"] = params.seed % _MAX_SEED
    if request.limits.min_tokens:
        out["min_tokens"] = request.limits.min_tokens
    if request.limits.allowed:
        out["allowed_token_ids"] = list(request.limits.allowed)
    if params.logit_bias:
        out["logit_bias"] = {str(token_id): bias for token_id, bias in params.logit_bias}
    if params.logprobs is not None:
        out["logprobs"] = params.logprobs
    if request.constraint is not None:
        out["structured_outputs"] = {"grammar": one_lark(request.constraint)}
    return out


def one_lark(constraint: LoweredConstraint) -> str:
    """The constraint as one Lark grammar: those that users brought become nested ones. The directive in front keeps
    vLLM from taking it for a grammar of another engine."""
    text = constraint.grammar
    if text.startswith("{"):
        main, *user = json.loads(text)["grammars"]
        lark = _LARK_PIECES.sub(lambda piece: piece[0].removeprefix("@"), main["lark_grammar"])
        nested = [f"{one['name']}: %lark {{\n{one['lark_grammar']}\n}}\n" for one in user]
        text = "".join([lark, *nested])
    return f"%llguidance {{}}\n{text}"


def read_event(endpoint: Endpoint, data: str, logprobs: int | None) -> Chunk:
    """One event. logprobs: alternatives that were asked for. Raises the ``InterlockError`` that it tells of."""
    try:
        event = json.loads(data)
        if "error" in event:
            raise refusal(event["error"])
        choices, usage = event.get("choices") or (), event.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens")
        if not choices:
            return Chunk(num_cached_tokens=cached)
        choice = choices[0]
        return Chunk(
            token_ids=tuple(choice["token_ids"] or ()),
            logprobs=_logprobs(endpoint, choice.get("logprobs") or {}, logprobs),
            finish_reason=choice["finish_reason"],
            num_cached_tokens=cached,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InterlockError("internal_error", f"vLLM sent an event that cannot be read: {error!r}") from None


def _logprobs(endpoint: Endpoint, found: Mapping[str, Any], asked: int | None) -> tuple[TokenLogprob, ...]:
    if asked is None:
        return ()
    if endpoint == GENERATE:
        return tuple(
            _scored(
                entry["token_id"],
                entry["logprob"],
                [(one["token_id"], one["logprob"]) for one in entry["top_logprobs"]],
                asked,
            )
            for entry in found.get("content") or ()
        )
    rows = zip(
        found.get("tokens") or (),
        found.get("token_logprobs") or (),
        found.get("top_logprobs") or (),
        strict=True,
    )
    return tuple(
        _scored(_token(token), logprob, [(_token(text), value) for text, value in (top or {}).items()], asked)
        for token, logprob, top in rows
    )


def _scored(token_id: int, logprob: float, top: list[tuple[int, float]], asked: int) -> TokenLogprob:
    """The token itself is among ``top`` whether or not it is one of the best."""
    best = tuple(sorted(top, key=lambda one: -one[1])[:asked])
    return TokenLogprob(token_id=token_id, logprob=logprob, top=best)


def _token(text: str) -> int:
    found = _TOKEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no token id")
    return int(found[1])


def refusal(error: Any) -> InterlockError:
    """vLLM's error object as ours: what it refuses was wrong in the request, since everything else was checked."""
    details = error if isinstance(error, Mapping) else {}
    message = str(details.get("message", error))[:500]
    code = details.get("code")
    if isinstance(code, int) and 400 <= code < 500:
        return InterlockError("invalid_value", f"vLLM refuses the request: {message}")
    return InterlockError("worker_died", f"vLLM failed: {message}")
