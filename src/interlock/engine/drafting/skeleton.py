"""Declared skeleton: the keys and constants of the schema, where the grammar wants one of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence as Seq

from interlock.constraints.draft_plan import legal_draft
from interlock.constraints.providers.base import MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.tokenizer import Tokenizer
from interlock.engine.sequence import Sequence

_GLUES = ("", ", ", ",")
_TAIL_TOKENS = 32
_JUNK = (b"~", b"Q")
_MAX_LITERALS = 32
_MAX_ENCODED = 4096


class SkeletonProposer:
    """Guesses the first declared literal that is legal now, in order of declaration: in an answer with any order of
    keys the grammar refuses those that have come already. Nothing is guessed inside free text."""

    name = "skeleton"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens = tokenizer.vocabulary.tokens
        self._junk = [self._tokens.index(token) for token in _JUNK if token in self._tokens]
        self._encode = functools.lru_cache(_MAX_ENCODED)(lambda text: tuple(tokenizer.encode_text(text)))

    def propose(self, sequences: Seq[Sequence], limit: int) -> list[list[int]]:
        return [self._guess(sequence)[:limit] for sequence in sequences]

    def close(self) -> None:
        """Nothing is held."""

    def _guess(self, sequence: Sequence) -> list[int]:
        constraint, lowered = sequence.constraint, sequence.request.constraint
        if constraint is None or lowered is None or not lowered.literals:
            return []
        probe = constraint.clone()
        try:
            if any(map(probe.accepts, self._junk)):
                return []  # free text
            tail = b"".join(self._tokens[token_id] for token_id in sequence.token_ids[-_TAIL_TOKENS:])
            for glue in _GLUES:
                for literal in lowered.literals[:_MAX_LITERALS]:
                    guess = self._legal(probe, _rest(glue + json.dumps(literal, ensure_ascii=False)[:-1], tail))
                    if guess:
                        return guess
        except MatcherError:
            pass  # the copy failed; a guess harms nobody
        finally:
            probe.close()
        return []

    def _legal(self, probe: ConstraintState, text: str) -> list[int]:
        """The ids of ``text`` where all of them may follow."""
        ids = list(self._encode(text)) if text else []
        if not ids or not probe.accepts(ids[0]):
            return []
        return ids if list(legal_draft(probe, ids, len(ids)).token_ids) == ids else []


def _rest(text: str, tail: bytes) -> str:
    """``text`` without the beginning that ``tail`` ends with."""
    for size in range(len(text), 0, -1):
        if tail.endswith(text[:size].encode()):
            return text[size:]
    return text
