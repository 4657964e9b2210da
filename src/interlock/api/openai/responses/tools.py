"""Wire tools to ``core.tools``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from interlock.api.fields import unsupported
from interlock.api.openai.responses.custom import custom_tool
from interlock.api.openai.responses.wire import WireTool
from interlock.api.schemas import parameters_text
from interlock.core.tools import EMPTY_PARAMETERS, Tool
from interlock.errors import InterlockError

TOOL_KINDS = ("function", "custom")
_SEARCH = "search in a function of your own, and load what it found by an item of type `additional_tools`"


def read_tools(wire: Sequence[WireTool], path: str) -> tuple[Tool, ...]:
    """Raises ``invalid_tools`` with the path in ``param``."""
    return tuple(_tool(tool, f"{path}[{index}]") for index, tool in enumerate(wire))


def custom_names(wire: Sequence[WireTool]) -> frozenset[str]:
    return frozenset(tool.name for tool in wire if tool.type == "custom" and tool.name)


def _tool(wire: WireTool, path: str) -> Tool:
    if wire.type not in TOOL_KINDS:
        raise InterlockError(
            "invalid_tools",
            f"tools of type `{wire.type[:100]}` are not supported, only `function` and `custom`",
            param=f"{path}.type",
            hint=_SEARCH if wire.type == "tool_search" else None,
        )
    if wire.name is None:
        raise InterlockError("missing_field", f"{path}.name is missing", param=f"{path}.name")
    deferred = bool(wire.defer_loading)
    if wire.type == "custom":
        return replace(custom_tool(wire, wire.name, path), deferred=deferred)
    if wire.format is not None:
        raise unsupported(f"{path}.format", "it belongs to tools of type `custom`")
    parameters = wire.parameters
    return Tool(
        name=wire.name,
        description=wire.description,
        parameters=EMPTY_PARAMETERS
        if parameters is None
        else parameters_text(parameters, f"{path}.parameters"),
        strict=wire.strict,
        deferred=deferred,
    )
