"""``python -m interlock.engine.worker STARTUP``: one model in a process of its own, and its composition root."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence

import numpy as np

import interlock
from interlock import log
from interlock.config import EngineConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.providers.registry import other_providers
from interlock.core.tokenizer import Tokenizer
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.engine.heap import keep_freed_memory
from interlock.engine.ipc.endpoint import WorkerEndpoint
from interlock.engine.ipc.messages import PROTOCOL_VERSION, Hello, PhaseChanged, Ready
from interlock.engine.ipc.startup import decode_startup
from interlock.engine.wakeup import Wakeup
from interlock.engine.worker_loop import WorkerLoop
from interlock.runners.base import ModelRunner, StepBatch
from interlock.runners.registry import create_runner
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.load import describe

_log = log.get(__name__)

_TERMINATE_DRAIN_S = 20.0
"""A service manager terminates parent and worker together: leave the parent time to say how to stop."""


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 after a shutdown, 1 when the worker could not start or go on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    _exit_with_parent()
    keep_freed_memory()
    startup = decode_startup(arguments[0])
    log.configure(startup.log_level, startup.log_format)
    endpoint = WorkerEndpoint(startup.endpoint)
    endpoint.send(Hello(PROTOCOL_VERSION, interlock.__version__, os.getpid()))
    try:
        _serve(startup.config, endpoint)
    except Exception as error:  # noqa: BLE001 - the edge of the process: the client learns why
        _log.exception("the worker stops")
        endpoint.send(PhaseChanged("failed", f"{type(error).__name__}: {error}"))
        return 1
    else:
        endpoint.send(PhaseChanged("stopping"))
        return 0
    finally:
        endpoint.close()


def _serve(config: EngineConfig, endpoint: WorkerEndpoint) -> None:
    """Load everything, then serve until a shutdown."""
    endpoint.send(PhaseChanged("loading_model"))
    tokenizer = _tokenizer(config)
    runner = create_runner(config, tokenizer)
    speculator = create_speculator(config, runner.info, tokenizer, create_runner)
    compiler = _compiler(config, tokenizer)
    try:
        endpoint.send(PhaseChanged("warming_up"))
        _warm_up(runner)
        wakeup = Wakeup()
        core = EngineCore(
            runner, compiler, tokenizer.vocabulary, config, speculator=speculator, wake=wakeup.set
        )
        loop = WorkerLoop(endpoint, core, compiler, wakeup)
        signal.signal(signal.SIGTERM, lambda _signal, _frame: loop.shut_down(_TERMINATE_DRAIN_S))
        endpoint.send(
            Ready(
                context_tokens=core.context_tokens,
                num_slots=runner.info.num_slots,
                vocab_size=tokenizer.vocabulary.size,
                runner=runner.info.name,
            )
        )
        loop.run()
    finally:
        compiler.close()
        if speculator is not None:
            speculator.close()
        runner.close()


def _tokenizer(config: EngineConfig) -> Tokenizer:
    if config.runner != "fake":
        return describe(config.model).tokenizer
    return byte_tokenizer() if config.fake.tokenizer is None else describe(config.fake.tokenizer).tokenizer


def _compiler(config: EngineConfig, tokenizer: Tokenizer) -> GrammarCompiler:
    provider = LLGuidanceProvider(tokenizer, renews=False)  # the engine has a grammar compiled beside the step
    compiler = GrammarCompiler(
        provider,
        GrammarCache(config.grammar_cache_bytes),
        others=other_providers(tokenizer),
        deadline_s=config.grammar_compile_s,
    )
    compiler.warm_up()
    return compiler


def _warm_up(runner: ModelRunner) -> None:
    """One token through the model: what is allocated lazily is allocated before the first request."""
    zero = np.zeros(1, dtype=np.int32)
    runner.launch(StepBatch(token_ids=zero, positions=zero, slots=zero, logits_at=zero)).discard()
    runner.truncate(0, 0)


def _exit_with_parent() -> None:
    """End this process when its standard input ends, which is when the parent has gone, however it went."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)  # nobody is left to clean up for

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
