"""A pass on a device that works on its own: submitted at once, its failures told where its result is asked for."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from interlock.runners.torch.forward import PassResult  # noqa: E402
from interlock.runners.torch.submission import OwnPasses, SubmittedPasses, passes_for  # noqa: E402


def test_a_cpu_computes_on_the_callers_thread_with_work_beside_it():
    passes = passes_for(torch.device("cpu"))
    assert isinstance(passes, OwnPasses)
    assert isinstance(passes_for(torch.device("cuda")), SubmittedPasses)
    threads: list[int] = []
    result = PassResult(torch.zeros(1, 1), is_static=False)

    def compute() -> PassResult:
        threads.append(threading.get_ident())
        return result

    passes.start(compute)
    assert passes.beside(threading.get_ident) != threading.get_ident()
    assert passes.wait() is result
    passes.start(compute)
    assert passes.wait() is result
    assert threads == [threading.get_ident()] * 2


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_failed_submission_is_told_by_wait_and_the_next_pass_works(monkeypatch, device):
    passes = passes_for(torch.device(device))
    result = PassResult(torch.zeros(1, 1), is_static=False)

    def fail() -> PassResult:
        raise torch.OutOfMemoryError("no room")

    passes.start(fail)
    with pytest.raises(RuntimeError, match="no room"):
        passes.wait()
    passes.start(lambda: result)
    assert passes.wait() is result
    asked: list[object] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", asked.append)
    passes.synchronize()
    assert asked == ([] if device == "cpu" else [torch.device(device)])
