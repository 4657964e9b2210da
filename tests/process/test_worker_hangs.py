"""A worker that hangs is ended and started again, and its streams go on."""

from __future__ import annotations

import asyncio
import os
import textwrap
from pathlib import Path

from interlock.config import EngineConfig
from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.client import LocalEngine

LIMIT_S = 120.0
CONFIG = EngineConfig(
    model=Path("none"),
    runner="fake",
    slots=2,
    context_tokens=4096,
    max_batch_tokens=64,
    mask_threads=1,
    worker_hang_s=4.0,
    max_worker_deaths=9,
)
HANGING_WORKER = """
    import sys
    import threading
    from pathlib import Path
    from interlock.engine.worker import main
    from interlock.runners.fake import FakeRunner

    launch = FakeRunner.launch
    flag = Path({flag!r})

    def launch_or_hang(runner, batch):
        if flag.exists():
            flag.unlink()
            threading.Event().wait()
        return launch(runner, batch)

    FakeRunner.launch = launch_or_hang
    sys.exit(main(sys.argv[1:]))
"""


async def test_a_pass_that_never_ends_costs_the_worker_but_no_stream(tmp_path: Path, monkeypatch):
    flag = tmp_path / "hang"
    (tmp_path / "hanging_worker.py").write_text(textwrap.dedent(HANGING_WORKER.format(flag=str(flag))))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    requests = [
        EngineRequest(
            request_id=f"r{i}",
            prompt_ids=(1, 2, i),
            sampling=SamplingParams(temperature=float(i), seed=i),
            max_tokens=200,
        )
        for i in range(2)
    ]
    engine = LocalEngine(CONFIG, worker_module="hanging_worker")

    async def read(request: EngineRequest, on_first=lambda: None) -> list[int]:
        outputs: list[EngineOutput] = []
        async for output in engine.generate(request):
            if not outputs:
                on_first()
            outputs.append(output)
        assert outputs[-1].finish_reason == "length"
        return [token_id for output in outputs for token_id in output.token_ids]

    try:
        async with asyncio.timeout(LIMIT_S):
            await engine.start()
            expected = [await read(request) for request in requests]
            num_restarts = (await engine.stats()).restarts
            assert await asyncio.gather(read(requests[0], flag.touch), read(requests[1])) == expected
            assert not flag.exists()
            assert (await engine.stats()).restarts > num_restarts
    finally:
        await engine.stop()
