"""Interlock: an LLM server whose tool calls and structured outputs cannot come out wrong, and the same as a library.

The names of the library are loaded when they are first used: importing the package loads nothing native, and costs
nothing where only a part of it is wanted.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "Constraint": "library.constraint",
    "InterlockError": "errors",
    "Matcher": "constraints.providers.base",
    "Model": "library.model",
    "Parser": "library.parser",
    "Problem": "errors",
    "SchemaLimits": "config",
    "TextParser": "library.parser",
    "Tool": "core.tools",
    "ToolChoice": "core.tools",
    "ToolContext": "core.tools",
    "Turn": "library.turn",
    "check_schema": "library.schemas",
    "schema_of": "library.schemas",
    "tool_of": "library.schemas",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
