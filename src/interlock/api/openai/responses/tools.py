"""Wire tools and tool choice to ``core.tools``. Whether they fit each other is checked in ``resolve``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.api.fields import unsupported
from interlock.api.openai.responses.custom import custom_tool
from interlock.api.openai.responses.wire import WireTool
from interlock.api.schemas import parameters_text
from interlock.core.tools import EMPTY_PARAMETERS, Tool, ToolChoice
from interlock.errors import InterlockError


def read_tools(wire: Sequence[WireTool], path: str) -> tuple[Tool, ...]:
    """Raises ``invalid_tools`` with the path in ``param``."""
    return tuple(_tool(tool, f"{path}[{index}]") for index, tool in enumerate(wire))


def custom_names(wire: Sequence[WireTool]) -> frozenset[str]:
    return frozenset(tool.name for tool in wire if tool.type == "custom" and tool.name)


def read_tool_choice(wire: Any) -> ToolChoice | None:
    """A mode, one tool, or ``allowed_tools``. Raises ``invalid_tools`` with param ``tool_choice``."""
    if wire is None:
        return None
    if wire in ("none", "auto", "required"):
        return ToolChoice(mode=wire)
    if isinstance(wire, dict):
        if wire.get("type") in ("function", "custom"):
            return ToolChoice(mode="named", name=_name(wire))
        if wire.get("type") == "allowed_tools":
            return _allowed_tools(wire)
    raise _wrong_choice("it must be `none`, `auto`, `required`, a function, a custom tool or allowed_tools")


def _tool(wire: WireTool, path: str) -> Tool:
    if wire.type not in ("function", "custom"):
        raise InterlockError(
            "invalid_tools",
            f"tools of type `{wire.type[:100]}` are not supported, only `function` and `custom`",
            param=f"{path}.type",
        )
    if wire.name is None:
        raise InterlockError("missing_field", f"{path}.name is missing", param=f"{path}.name")
    if wire.defer_loading:
        raise unsupported(f"{path}.defer_loading")
    if wire.type == "custom":
        return custom_tool(wire, wire.name, path)
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
    )


def _allowed_tools(wire: dict[str, Any]) -> ToolChoice:
    mode, tools = wire.get("mode"), wire.get("tools")
    if mode not in ("auto", "required"):
        raise _wrong_choice("the mode of allowed_tools must be `auto` or `required`")
    if not isinstance(tools, list):
        raise _wrong_choice("allowed_tools needs `tools`, an array of tools")
    return ToolChoice(mode=mode, allowed=tuple(_name(tool) for tool in tools))


def _name(wire: Any) -> str:
    if not isinstance(wire, dict) or wire.get("type") not in ("function", "custom"):
        raise _wrong_choice("only tools of type `function` and `custom` can be chosen")
    name = wire.get("name")
    if not isinstance(name, str) or not name:
        raise _wrong_choice('a tool is chosen by name: {"type": "function", "name": ...}')
    return name


def _wrong_choice(reason: str) -> InterlockError:
    return InterlockError("invalid_tools", f"tool_choice is wrong: {reason}", param="tool_choice")
