"""Masks on their way to the device while the forward pass runs."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from interlock.constraints import bitmask
from interlock.constraints.bitmask import Mask


class MaskStage:
    """Two buffers in turns, pinned where the device has need of that: what a step reads is not written to before the
    step after the next one.

    A row of nobody allows every id, on the device too, where it stays between steps; so a slot that is used again finds
    nothing of the last one, whatever went wrong.
    """

    def __init__(self, num_rows: int, vocab_size: int, device: torch.device) -> None:
        self._allowed = torch.from_numpy(bitmask.all_allowed(vocab_size))
        self._host = [self._fresh(num_rows, device.type == "cuda") for _ in range(2)]
        self._device = self._host if device.type == "cpu" else [one.to(device) for one in self._host]
        self._used: list[set[int]] = [set(), set()]
        self._turn = 0
        self._copying = torch.cuda.Stream(device) if device.type == "cuda" else None

    def stage(self, masks: Mapping[int, Mask]) -> torch.Tensor:
        """The masks as rows of a buffer on the device, int32 [rows, ceil(vocab/32)]; all other rows allow everything.

        Raises ``ValueError`` for a mask of another size or that allows nothing, before anything is written. When writing
        fails, both buffers are as new and the error goes on.
        """
        for row, mask in masks.items():
            if mask.size != len(self._allowed):
                raise ValueError(f"mask of {mask.size} words in row {row}, not {len(self._allowed)}")
            if not bitmask.any_allowed(mask):
                raise ValueError(f"the mask of row {row} allows no token")
        self._turn = 1 - self._turn
        try:
            self._write(masks)
        except BaseException:
            self.reset()
            raise
        return self._device[self._turn]

    def reset(self) -> None:
        """Both buffers allow everything in every row."""
        if self._copying is not None:
            self._copying.synchronize()
        for host, device, used in zip(self._host, self._device, self._used, strict=True):
            host[:] = self._allowed
            if device is not host:
                device.copy_(host)
            used.clear()

    def _write(self, masks: Mapping[int, Mask]) -> None:
        host, used = self._host[self._turn], self._used[self._turn]
        changed = used | masks.keys()
        for row in used - masks.keys():
            host[row] = self._allowed
        used.update(masks)  # from here on these rows are dirty
        for row, mask in masks.items():
            host[row] = torch.from_numpy(mask)
        used.intersection_update(masks)
        if changed:
            self._copy(host, self._device[self._turn], min(changed), max(changed) + 1)

    def _copy(self, host: torch.Tensor, device: torch.Tensor, start: int, end: int) -> None:
        """On a stream of its own, beside the forward pass; what the caller submits next waits for it."""
        if device is host:
            return
        if self._copying is None:
            device[start:end].copy_(host[start:end], non_blocking=True)
            return
        current = torch.cuda.current_stream(device.device)
        with torch.cuda.stream(self._copying):
            device[start:end].copy_(host[start:end], non_blocking=True)
        current.wait_stream(self._copying)

    def _fresh(self, num_rows: int, pinned: bool) -> torch.Tensor:
        rows = self._allowed.repeat(num_rows, 1)
        return rows.pin_memory() if pinned else rows
