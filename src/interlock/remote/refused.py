"""What the engine vLLM cannot do for a request: said by name before anything is generated, and never passed over."""

from __future__ import annotations

from interlock.core.engine import EngineRequest
from interlock.errors import InterlockError


def check_request(request: EngineRequest, special_ids: frozenset[int]) -> None:
    """special_ids: of the vocabulary. Raises ``unsupported_parameter``."""
    params, limits = request.sampling, request.limits
    is_constrained = request.constraint is not None
    penalties = (params.frequency_penalty, params.presence_penalty, params.repetition_penalty)
    is_biased = bool(params.logit_bias) or penalties != (0.0, 0.0, 1.0)
    is_limited = bool(limits.min_tokens) or bool(limits.allowed)
    wants_scores = params.logprobs is not None
    beside = "none beside a constraint: together they could leave no token"
    refusals = (
        (request.trace, "interlock.trace", "it does not show its masks"),
        (bool(request.priority), "priority", "it takes requests as they come"),
        (params.typical_p != 1.0, "typical_p", "it has no typical sampling"),
        (bool(limits.banned), "bad_words", "it takes none as ids"),
        (bool(limits.suppressed), "ignore_eos", "it knows one end of a turn, and this model may have several"),
        (bool(limits.min_tokens) and is_constrained, "min_tokens", beside),
        (bool(limits.allowed) and is_constrained, "allowed_token_ids", beside),
        (
            is_constrained and not special_ids.issuperset(request.stop_ids),
            "stop_token_ids",
            "it would end a constrained answer also where that may not end",
        ),
        (params.prompt_logprobs is not None, "prompt_logprobs", "it shows none of a prompt that was cached"),
        (wants_scores and is_biased, "logprobs", "it tells those from before a bias and penalties"),
        (
            wants_scores and (is_constrained or is_limited) and params.logprobs_of == "masked",
            "logprobs",
            "it tells the model's own, from before constraint and limits (ask for interlock.logprobs: model)",
        ),
    )
    for asked, param, reason in refusals:
        if asked:
            raise InterlockError(
                "unsupported_parameter", f"{param} cannot be had from the engine vllm: {reason}", param=param
            )
