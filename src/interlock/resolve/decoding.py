"""How tokens are chosen for a request, and which of them end it."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.core.sampling import SamplingOptions, SamplingParams, TokenLimits
from interlock.core.tokenizer import Tokenizer
from interlock.families.base import ModelFamily
from interlock.resolve.sampling import resolve_sampling
from interlock.resolve.token_limits import resolve_stop_ids, resolve_token_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """stop_ids: the model's own, and the request's."""

    sampling: SamplingParams
    limits: TokenLimits
    stop_ids: tuple[int, ...]


def resolve_decoding(options: SamplingOptions, family: ModelFamily, tokenizer: Tokenizer) -> Decoding:
    """Raises ``invalid_value`` with the name of the field that is wrong."""
    own_stop_ids = turn_stop_ids(family, tokenizer)
    vocab_size = tokenizer.vocabulary.size
    return Decoding(
        sampling=resolve_sampling(options, vocab_size),
        limits=resolve_token_limits(options, tokenizer, own_stop_ids),
        stop_ids=resolve_stop_ids(options.stop_token_ids, own_stop_ids, vocab_size),
    )


def turn_stop_ids(family: ModelFamily, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Every id that ends a turn: the vocabulary's and the family's."""
    of_family = (tokenizer.special_tokens.get(spelling) for spelling in family.stop_tokens)
    ids = (*tokenizer.vocabulary.stop_ids, *(token_id for token_id in of_family if token_id is not None))
    return tuple(dict.fromkeys(ids))


def turn_stop_texts(family: ModelFamily, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Their spellings."""
    stop_ids = set(turn_stop_ids(family, tokenizer))
    return tuple(text for text, token_id in tokenizer.special_tokens.items() if token_id in stop_ids)
