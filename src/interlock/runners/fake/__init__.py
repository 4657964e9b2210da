"""A runner without a model, for tests, benchmarks and trying the server."""

from interlock.runners.fake.logits import LogitsSource, Prefix, UniformLogits, WantedLogits
from interlock.runners.fake.runner import FakeRunner, Faults
from interlock.runners.fake.script import Script, ScriptEntry, load_script

__all__ = [
    "FakeRunner",
    "Faults",
    "LogitsSource",
    "Prefix",
    "Script",
    "ScriptEntry",
    "UniformLogits",
    "WantedLogits",
    "load_script",
]
