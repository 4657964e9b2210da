"""A pass on a device that works on its own: submitted at once, its failures told where its result is asked for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from interlock.runners.torch.forward import PassResult  # noqa: E402
from interlock.runners.torch.submission import SubmittedPasses, ThreadedPasses, passes_for  # noqa: E402


def test_a_cpu_computes_on_a_thread_and_other_devices_on_their_own():
    on_cpu = passes_for(torch.device("cpu"))
    assert isinstance(on_cpu, ThreadedPasses)
    on_cpu.stop()
    assert isinstance(passes_for(torch.device("cuda")), SubmittedPasses)


def test_a_failed_submission_is_told_by_wait_and_the_next_pass_works(monkeypatch):
    passes = SubmittedPasses(torch.device("cuda"))
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
    assert asked == [torch.device("cuda")]
    passes.stop()
