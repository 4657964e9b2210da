"""A computation of fixed shapes: on CUDA captured as a graph once and replayed, elsewhere called again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch

from interlock.runners.torch.arena import Arena, HostArray

T = TypeVar("T")
_WARM_UPS = 2


class Replay(Generic[T]):
    """body: from tensors shaped as ``arrays`` to tensors; it may be run twice on the same input without harm. Its result
    stays in place and is overwritten by the next call.

    pool: memory of graphs of which only one runs at a time.
    """

    def __init__(
        self,
        arrays: Sequence[HostArray],
        device: torch.device,
        body: Callable[[list[torch.Tensor]], T],
        pool: Any,
    ) -> None:
        self._arena = Arena(arrays, device)
        self._body = body
        self._graph: Any = None
        if device.type == "cuda":
            self._graph, self._result = self._captured(device, pool)

    def __call__(self, arrays: Sequence[HostArray]) -> T:
        self._arena.fill(arrays)
        if self._graph is None:
            return self._body(self._arena.tensors)
        self._graph.replay()
        return self._result

    def _captured(self, device: torch.device, pool: Any) -> tuple[Any, T]:
        """What is allocated lazily is allocated before the capture, on a stream of its own as CUDA demands."""
        with torch.cuda.device(device):  # a capture is of a stream of the device that is current
            beside = torch.cuda.Stream(device)
            beside.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(beside):
                for _ in range(_WARM_UPS):
                    self._body(self._arena.tensors)
            torch.cuda.current_stream(device).wait_stream(beside)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, stream=beside):
                result = self._body(self._arena.tensors)
        return graph, result


def graph_pool(device: torch.device) -> Any:
    """Memory that the graphs of one runner share."""
    return torch.cuda.graph_pool_handle() if device.type == "cuda" else None
