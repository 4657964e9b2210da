"""Keys and values of every layer, one preallocated tensor each."""

from __future__ import annotations

from collections.abc import Iterator

import torch


class KVCache:
    """Per layer ``[slots + 1, heads, max_tokens, dim]``, allocated when the layer first writes: only the model knows its
    heads. The last slot takes what padding writes and is never read for a result.

    What a slot holds is known elsewhere (``runners/slots.py``): cutting a sequence changes no tensor.
    """

    def __init__(self, num_slots: int, max_tokens: int) -> None:
        self._num_slots = num_slots
        self._max_tokens = max_tokens
        self._layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    @property
    def max_tokens(self) -> int:
        """Tokens of one slot."""
        return self._max_tokens

    @property
    def padding_slot(self) -> int:
        """The slot that padding goes to."""
        return self._num_slots

    @property
    def num_bytes(self) -> int:
        """What the tensors take."""
        return sum(int(one.nbytes) for one in self._tensors())

    def write(
        self,
        layer: int,
        keys: torch.Tensor,
        values: torch.Tensor,
        slots: torch.Tensor,
        positions: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put the tokens of a pass into the cache of ``layer``, and return that cache.

        keys, values: [tokens, heads, dim]. slots, positions: int64 [tokens].
        """
        held = self._layers.get(layer)
        if held is None:
            held = self._layers[layer] = (self._allocate(keys), self._allocate(values))
        held[0][slots, :, positions] = keys
        held[1][slots, :, positions] = values
        return held

    def copy(self, source: int, target: int, num_tokens: int) -> None:
        """Make ``target`` hold the first ``num_tokens`` of ``source``."""
        with torch.inference_mode():
            for layer in self._layers.values():
                for held in layer:
                    held[target, :, :num_tokens] = held[source, :, :num_tokens]

    def state_bytes(self, num_tokens: int) -> int:
        """What ``save`` of so many tokens takes."""
        return sum(one[0, :, :num_tokens].nbytes for one in self._tensors())

    def save(self, slot: int, num_tokens: int, buffer: torch.Tensor) -> None:
        """Copy the first ``num_tokens`` of ``slot`` into ``buffer``: uint8 [state_bytes], on the host."""
        for part, held in self._parts(buffer, slot, num_tokens):
            part.copy_(held)

    def restore(self, slot: int, num_tokens: int, buffer: torch.Tensor) -> None:
        """The other way round."""
        with torch.inference_mode():
            for part, held in self._parts(buffer, slot, num_tokens):
                held.copy_(part)

    def _tensors(self) -> Iterator[torch.Tensor]:
        return (one for layer in self._layers.values() for one in layer)

    def _parts(
        self, buffer: torch.Tensor, slot: int, num_tokens: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Each tensor's share of a slot, with its place in ``buffer``."""
        start = 0
        for one in self._tensors():
            held = one[slot, :, :num_tokens]
            yield buffer[start : start + held.nbytes].view(held.dtype).view(held.shape), held
            start += held.nbytes

    def _allocate(self, sample: torch.Tensor) -> torch.Tensor:
        _, heads, dim = sample.shape
        return sample.new_zeros((self._num_slots + 1, heads, self._max_tokens, dim))
