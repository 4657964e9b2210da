"""When a forward pass is submitted, and what its caller does meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch

from interlock.runners.side_thread import SideThread
from interlock.runners.torch.forward import PassResult

T = TypeVar("T")


class Passes(Protocol):
    """One pass at a time."""

    def start(self, call: Callable[[], PassResult]) -> None:
        """Take ``call``, a pass."""
        ...

    def beside(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, called while the pass runs."""
        ...

    def wait(self) -> PassResult:
        """The pass that was taken; the device may still be at it. Raises what kept it from being submitted."""
        ...

    def synchronize(self) -> None:
        """Wait until the device is done."""
        ...


class OwnPasses:
    """For a CPU: the caller's thread does the computing, as late as it can, so that there may be work beside it."""

    def __init__(self) -> None:
        self._side = SideThread("beside-torch")
        self._call: Callable[[], PassResult] | None = None
        self._result: PassResult | None = None
        self._error: RuntimeError | None = None

    def start(self, call: Callable[[], PassResult]) -> None:
        self._call, self._result, self._error = call, None, None

    def beside(self, work: Callable[[], T]) -> T:
        return self._side.run(work, self._compute)

    def wait(self) -> PassResult:
        self._compute()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def synchronize(self) -> None:
        """Nothing is left to do once a pass has ended."""

    def _compute(self) -> None:
        call, self._call = self._call, None
        if call is None:
            return
        try:
            self._result = call()
        except RuntimeError as error:
            self._error = error


class SubmittedPasses:
    """For devices that work on their own: the caller submits, which takes it no longer than a thread would, and what
    follows is submitted behind it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._result: PassResult | None = None
        self._error: Exception | None = None

    def start(self, call: Callable[[], PassResult]) -> None:
        self._result = self._error = None
        try:
            self._result = call()
        except RuntimeError as error:
            self._error = error

    def beside(self, work: Callable[[], T]) -> T:
        return work()

    def wait(self) -> PassResult:
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def synchronize(self) -> None:
        torch.accelerator.synchronize(self._device)


def passes_for(device: torch.device) -> Passes:
    """How passes on ``device`` are run."""
    return OwnPasses() if device.type == "cpu" else SubmittedPasses(device)
