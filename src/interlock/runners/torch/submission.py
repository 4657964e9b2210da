"""How a forward pass gets going while its caller goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch

from interlock.runners.pass_thread import PassThread
from interlock.runners.torch.forward import PassResult


class Passes(Protocol):
    """One pass at a time."""

    def start(self, call: Callable[[], PassResult]) -> None:
        """Begin ``call``, a pass."""
        ...

    def wait(self) -> PassResult:
        """The pass that was begun; the device may still be at it. Raises what kept it from being submitted."""
        ...

    def synchronize(self) -> None:
        """Wait until the device is done."""
        ...

    def stop(self) -> None: ...


class ThreadedPasses(PassThread[PassResult]):
    """For a CPU, where the caller's own thread would do the computing."""

    def synchronize(self) -> None:
        """Nothing is left to do once a pass has ended."""


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

    def wait(self) -> PassResult:
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def synchronize(self) -> None:
        torch.accelerator.synchronize(self._device)

    def stop(self) -> None:
        """No thread is to be ended."""


def passes_for(device: torch.device) -> Passes:
    """How passes on ``device`` are run."""
    return ThreadedPasses("torch-forward") if device.type == "cpu" else SubmittedPasses(device)
