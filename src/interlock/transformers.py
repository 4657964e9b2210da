"""Constraints in Hugging Face transformers' ``generate``. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from interlock.constraints import bitmask
from interlock.constraints.bitmask import Mask
from interlock.library.prefix_masks import Constrained, PrefixMasks

__all__ = ["LogitsProcessor"]


class LogitsProcessor:
    """``model.generate(..., logits_processor=[LogitsProcessor(constraint)])``.

    constraints: a ``Constraint`` or a ``Turn`` for all prompts of a batch, or one for each (``None``: free). Beams and
    several answers to a prompt are followed one by one. The prompt is what the first call is given, padding included;
    a processor can be used for one generation after another, but not for two at once. A call that is not one of the
    running generation, or has more than one token more than any of it before, begins a new one; ``restart`` says so where
    a prompt is shorter than that.
    threads: for masks, 0 for one a core.

    Ends with a stop id of the model where the constraint ends; ``generate`` must stop there (pass
    ``eos_token_id=list(model.tokenizer.vocabulary.stop_ids)`` where the folder's generation_config.json lists fewer).
    Every call may raise ``InterlockError``: ``matcher_failed``, ``no_token_allowed``.
    """

    def __init__(self, constraints: Constrained | Sequence[Constrained | None], *, threads: int = 0) -> None:
        self._given = constraints
        self._threads = threads
        self._masks: PrefixMasks | None = None
        self._prompt: Any = None  # int64 [rows, prompt tokens] of the running generation
        self._longest = 0  # tokens of its longest call

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """input_ids: int64 [rows, tokens so far]. scores: float [rows, vocab or more]. Returns them with what may not
        come next at minus infinity."""
        if self._is_new(input_ids):
            self._begin(input_ids)
        self._longest = max(self._longest, input_ids.shape[1])
        assert self._masks is not None
        outputs = [tuple(row) for row in input_ids[:, self._prompt.shape[1] :].tolist()]
        masks = self._masks.fill(outputs)
        allowed = _allowed(masks, self._masks.vocabulary.size, scores)
        return scores.masked_fill(~allowed, -torch.inf)

    def restart(self) -> None:
        """The next call is given a prompt."""
        self._prompt = None

    def _is_new(self, input_ids: Any) -> bool:
        prompt = self._prompt
        return (
            prompt is None
            or prompt.shape[0] != input_ids.shape[0]
            or not prompt.shape[1] < input_ids.shape[1] <= self._longest + 1
            or not torch.equal(prompt, input_ids[:, : prompt.shape[1]])
        )

    def _begin(self, input_ids: Any) -> None:
        self._prompt = input_ids.clone()
        self._longest = 0
        given = self._given
        constraints = list(given) if isinstance(given, Sequence) else [given] * len(input_ids)
        if self._masks is None or not isinstance(given, Sequence):
            self._masks = PrefixMasks(constraints, threads=self._threads)
        self._masks.restart()


def _allowed(masks: list[Mask | None], vocab_size: int, scores: Any) -> Any:
    """bool [rows, width of scores] on the device of ``scores``: the packed masks travel, the bits are taken apart there."""
    free = bitmask.all_allowed(vocab_size)
    packed = np.stack([free if mask is None else mask for mask in masks])
    words = torch.from_numpy(packed).to(scores.device)
    bits = (words[:, :, None] >> torch.arange(32, device=scores.device, dtype=torch.int32)) & 1
    flat = bits.reshape(len(masks), -1).bool()
    width = scores.shape[1]
    if flat.shape[1] >= width:
        return flat[:, :width]
    return torch.nn.functional.pad(flat, (0, width - flat.shape[1]), value=False)
