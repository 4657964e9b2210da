"""Constraints in llama-cpp-python. The package itself is not needed to import this."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from interlock.constraints import bitmask
from interlock.constraints.bitmask import Mask
from interlock.errors import InterlockError
from interlock.library.prefix_masks import Constrained, Prefix, PrefixMasks

__all__ = ["LogitsProcessor"]

Ids = npt.NDArray[np.intc]
Scores = npt.NDArray[np.single]


class LogitsProcessor:
    """``llama.create_completion(prompt_ids, logits_processor=[processor], stopping_criteria=processor.check)``.

    For one generation after another; the first call of each is given the prompt. A call that does not go on from it, or has
    more than one token more than any before, is the first of a new one; ``restart`` says so where a prompt is shorter than
    that, or goes on from an answer that was cut. Where the answer ends the only ids left
    are the model's stop ids, and llama-cpp-python stops at its EOS.

    Every call may raise ``InterlockError``: ``matcher_failed``, ``no_token_allowed``. llama-cpp-python calls from native code,
    where an exception is lost, so before it is raised all scores but those of the stop ids are minus infinity, which ends the
    answer, and ``check`` raises it where it is not lost.
    """

    def __init__(self, constraint: Constrained) -> None:
        self._masks = PrefixMasks([constraint])
        self._prompt: Prefix | None = None
        self._longest = 0  # tokens of the running generation's longest call
        self._last: Prefix = ()  # ids of the last call
        self._mask: Mask | None = None  # what was allowed behind them
        self._error: Exception | None = None

    def __call__(self, input_ids: Ids, scores: Scores) -> Scores:
        """input_ids: [tokens so far]. scores: [vocab or more]. Returns them with what may not come next at minus
        infinity."""
        ids = tuple(input_ids.tolist())
        try:
            self._mask = mask = self._mask_behind(ids)
        except Exception as error:
            self._error, self._mask, self._prompt = error, None, None
            scores[:] = _masked(scores, bitmask.of_ids(self._size, self._masks.vocabulary.stop_ids), self._size)
            raise
        finally:
            self._last = ids
        return scores if mask is None else _masked(scores, mask, self._size)

    def check(self, input_ids: Ids, _scores: object = None) -> bool:
        """A stopping criterion that never stops: it raises what was raised by a call for these ids, and ``matcher_failed``
        where there was none. llama-cpp-python forgets processors beside a ``logit_bias`` that is given, and shows them
        drafts of a ``draft_model`` that nobody has accepted."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        if tuple(input_ids.tolist()) != self._last:
            raise InterlockError(
                "matcher_failed",
                "a token was chosen without its mask; logit_bias and draft_model cannot be used",
            )
        return False

    def restart(self) -> None:
        """The next call is given a prompt."""
        self._prompt = None

    @property
    def _size(self) -> int:
        return self._masks.vocabulary.size

    def _mask_behind(self, ids: Prefix) -> Mask | None:
        prompt = self._prompt
        if prompt is None or not len(prompt) < len(ids) <= self._longest + 1 or ids[: len(prompt)] != prompt:
            self._begin(ids)
            prompt = ids
        self._longest = max(self._longest, len(ids))
        return self._masks.fill([ids[len(prompt) :]])[0]

    def _begin(self, ids: Prefix) -> None:
        if self._prompt is not None and self._may_be_drafts(ids):
            raise InterlockError(
                "matcher_failed",
                "several tokens came at once: drafts cannot be told from a prompt that goes on from an answer that was "
                "cut; use no draft_model, and call restart() before such a prompt",
            )
        self._prompt = ids
        self._longest = 0
        self._error = None
        self._masks.restart()

    def _may_be_drafts(self, ids: Prefix) -> bool:
        """Whether the last answer goes on in ``ids``: the token behind what was seen of it is one that it may have."""
        seen = len(self._last)
        if self._mask is None or len(ids) < seen + 2 or ids[:seen] != self._last:
            return False
        following = ids[seen]
        return bitmask.is_allowed(self._mask, following) and following not in self._masks.vocabulary.stop_ids


def _masked(scores: Scores, mask: Mask, vocab_size: int) -> Scores:
    allowed = np.zeros(scores.shape[-1], np.bool_)
    size = min(vocab_size, allowed.size)
    allowed[:size] = bitmask.unpack(mask, vocab_size)[:size]
    return np.where(allowed, scores, np.float32(-np.inf))
