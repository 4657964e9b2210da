"""The small arrays of a step on their way to the device: one buffer, one copy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

HostArray = NDArray[np.int64] | NDArray[np.float64]


class Arena:
    """Tensors of fixed shape and place, views of one buffer whose host side is pinned where the device has need of that.

    ``fill`` may be called again once the device is done with what was there.
    """

    def __init__(self, arrays: Sequence[HostArray], device: torch.device) -> None:
        """Room for arrays like ``arrays``, which are int64 or float64, and them in it."""
        size = sum(array.size for array in arrays)
        self._host = torch.empty(size, dtype=torch.int64, pin_memory=device.type == "cuda")
        self._words = self._host.numpy()
        self._device = self._host if device.type == "cpu" else torch.empty_like(self._host, device=device)
        self.tensors = self._views(arrays)
        self.fill(arrays)

    def fill(self, arrays: Sequence[HostArray]) -> None:
        """Send arrays of the same shapes."""
        start = 0
        for array in arrays:
            self._words[start : start + array.size] = array.view(np.int64).reshape(-1)
            start += array.size
        if self._device is not self._host:
            self._device.copy_(self._host, non_blocking=True)

    def _views(self, arrays: Sequence[HostArray]) -> list[torch.Tensor]:
        views, start = [], 0
        for array in arrays:
            view = self._device[start : start + array.size]
            if array.dtype == np.float64:
                view = view.view(torch.float64)
            views.append(view.view(array.shape))
            start += array.size
        return views
