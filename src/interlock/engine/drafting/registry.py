"""Methods of guessing by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from interlock import log
from interlock.config import MAX_SPECULATIVE_TOKENS, EngineConfig, SpeculativeConfig, SpeculativeMethod
from interlock.core.tokenizer import Tokenizer
from interlock.engine.drafting.base import DraftProposer
from interlock.engine.drafting.draft_model import DraftModelProposer
from interlock.engine.drafting.ngram import NgramProposer
from interlock.engine.drafting.skeleton import SkeletonProposer
from interlock.engine.drafting.speculator import Speculator
from interlock.errors import InterlockError
from interlock.runners.base import ModelRunner, RunnerInfo

_log = log.get(__name__)

_NO_DRAFT_HEAD = (
    "the method draft_head is not supported, whatever the model: no runner computes a model's own head. llama.cpp has "
    "multi-token prediction in its C++ library alone, not in the C interface that is used here. "
    "Use ngram, skeleton or draft_model"
)

RunnerFactory = Callable[[EngineConfig, Tokenizer], ModelRunner]


def create_speculator(
    config: EngineConfig, info: RunnerInfo, tokenizer: Tokenizer, create_runner: RunnerFactory
) -> Speculator | None:
    """What ``config.speculative`` asks for; ``None`` where nothing is asked, or the runner cannot take tokens back.

    create_runner: loads a draft model. Raises ``InterlockError`` (``invalid_value``).
    """
    speculative = config.speculative
    if speculative is None:
        return None
    if speculative.num_speculative_tokens > MAX_SPECULATIVE_TOKENS:
        raise InterlockError(
            "invalid_value", f"num_speculative_tokens must be at most {MAX_SPECULATIVE_TOKENS}"
        )
    if not info.capabilities.partial_rollback:
        _log.warning("%s cannot take back tokens, so nothing is guessed ahead", info.name)
        return None
    proposers = [
        _proposer(method, speculative, config, info, tokenizer, create_runner) for method in speculative.methods
    ]
    return Speculator(
        proposers,
        speculative,
        frozenset(tokenizer.vocabulary.stop_ids),
        forced_tokens=config.forced_tokens,
    )


def _proposer(
    method: SpeculativeMethod,
    speculative: SpeculativeConfig,
    config: EngineConfig,
    info: RunnerInfo,
    tokenizer: Tokenizer,
    create_runner: RunnerFactory,
) -> DraftProposer:
    match method:
        case "ngram":
            return NgramProposer(shortest=speculative.prompt_lookup_min, longest=speculative.prompt_lookup_max)
        case "skeleton":
            return SkeletonProposer(tokenizer)
        case "draft_head":
            raise InterlockError("invalid_value", _NO_DRAFT_HEAD)
        case "draft_model":
            return _draft_model(speculative, config, info, tokenizer, create_runner)


def _draft_model(
    speculative: SpeculativeConfig,
    config: EngineConfig,
    info: RunnerInfo,
    tokenizer: Tokenizer,
    create_runner: RunnerFactory,
) -> DraftProposer:
    if speculative.model is None:
        raise InterlockError("invalid_value", "the method draft_model needs a model")
    runner = create_runner(
        replace(config, model=speculative.model, context_tokens=0, speculative=None), tokenizer
    )
    num_ids = tokenizer.vocabulary.size
    if runner.info.num_logits != info.num_logits:
        runner.close()
        raise InterlockError(
            "invalid_value",
            f"the draft model has {runner.info.num_logits} logits and the model {info.num_logits}: "
            "they need the same vocabulary",
        )
    return DraftModelProposer(runner, num_ids)
