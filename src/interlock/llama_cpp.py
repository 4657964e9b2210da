"""Constraints in llama-cpp-python. The package itself is not needed to import this."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from interlock.constraints import bitmask
from interlock.library.prefix_masks import Constrained, PrefixMasks

__all__ = ["LogitsProcessor"]


class LogitsProcessor:
    """``llama.create_completion(prompt_ids, logits_processor=LogitsProcessorList([LogitsProcessor(constraint)]))``.

    For one generation after another; the first call of each is given the prompt. A call that does not go on from it, or has
    more than one token more than any before, is the first of a new one; ``restart`` says so where a prompt is shorter than
    that. Where the answer ends the only ids left
    are the model's stop ids, and llama-cpp-python stops at its EOS.
    Every call may raise ``InterlockError``: ``matcher_failed``, ``no_token_allowed``.
    """

    def __init__(self, constraint: Constrained) -> None:
        self._masks = PrefixMasks([constraint])
        self._prompt: tuple[int, ...] | None = None
        self._longest = 0  # tokens of the running generation's longest call

    def __call__(
        self, input_ids: npt.NDArray[np.intc], scores: npt.NDArray[np.single]
    ) -> npt.NDArray[np.single]:
        """input_ids: [tokens so far]. scores: [vocab or more]. Returns them with what may not come next at minus
        infinity."""
        ids = tuple(input_ids.tolist())
        prompt = self._prompt
        if prompt is None or not len(prompt) < len(ids) <= self._longest + 1 or ids[: len(prompt)] != prompt:
            self._prompt = prompt = ids
            self._longest = 0
            self._masks.restart()
        self._longest = max(self._longest, len(ids))
        mask = self._masks.fill([ids[len(prompt) :]])[0]
        if mask is None:
            return scores
        allowed = np.zeros(scores.shape[-1], np.bool_)
        size = min(self._masks.vocabulary.size, allowed.size)
        allowed[:size] = bitmask.unpack(mask, self._masks.vocabulary.size)[:size]
        return np.where(allowed, scores, np.float32(-np.inf))

    def restart(self) -> None:
        """The next call is given a prompt."""
        self._prompt = None
