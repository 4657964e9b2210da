"""Runners by name. A runner's module, and the native library behind it, is imported only when it is chosen."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping

from interlock.config import EngineConfig
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.runners.base import ModelRunner

# Where neither the configuration nor the model sets a smaller limit.
MAX_DEFAULT_CONTEXT_TOKENS = 8192


def create_runner(config: EngineConfig, tokenizer: Tokenizer) -> ModelRunner:
    """Load the model of ``config`` into its runner.

    Raises ``InterlockError`` for an unknown runner and for a model or library that cannot be loaded.
    """
    name = config.runner
    if name == "auto":
        name = "torch" if config.model.is_dir() else "llama_cpp"
    factory = FACTORIES.get(name)
    if factory is None:
        names = ", ".join(sorted(FACTORIES))
        raise InterlockError("invalid_value", f"no runner is called {name!r}; there are: {names}")
    return factory(config, tokenizer)


def _llama_cpp(config: EngineConfig, _tokenizer: Tokenizer) -> ModelRunner:
    from interlock.runners.llama_cpp.runner import LlamaCppRunner

    return LlamaCppRunner(config, max_default_context_tokens=MAX_DEFAULT_CONTEXT_TOKENS)


def _torch(config: EngineConfig, _tokenizer: Tokenizer) -> ModelRunner:
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise InterlockError(
            "missing_extra",
            f"{' and '.join(missing)} are not installed, which models in folders need",
            hint="pip install 'interlock-llm[torch]'",
        )
    from interlock.runners.torch.runner import TorchRunner

    return TorchRunner(config, max_default_context_tokens=MAX_DEFAULT_CONTEXT_TOKENS)


def _fake(config: EngineConfig, tokenizer: Tokenizer) -> ModelRunner:
    from interlock.runners.fake import FakeRunner, Script, UniformLogits, WantedLogits, load_script

    num_logits = tokenizer.vocabulary.size
    fake = config.fake
    if fake.mode == "uniform":
        logits: UniformLogits | WantedLogits = UniformLogits(num_logits, fake.seed)
    elif fake.script is None:
        raise InterlockError("invalid_value", "the scripted fake runner needs a script")
    else:
        script = Script(load_script(fake.script), tokenizer)
        logits = WantedLogits(num_logits, script.wanted, fake.seed)
    return FakeRunner(
        num_logits,
        logits=logits,
        slots=config.slots,
        context_tokens=config.context_tokens or MAX_DEFAULT_CONTEXT_TOKENS,
        max_batch_tokens=config.max_batch_tokens,
    )


FACTORIES: Mapping[str, Callable[[EngineConfig, Tokenizer], ModelRunner]] = {
    "llama_cpp": _llama_cpp,
    "torch": _torch,
    "fake": _fake,
}
