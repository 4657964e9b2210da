"""Wire tools and tool choice to ``core.tools``. Whether they fit each other is checked in ``resolve``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from interlock.api.openai.wire import WireTool
from interlock.api.schemas import parameters_text
from interlock.core.tools import EMPTY_PARAMETERS, Tool, ToolChoice
from interlock.errors import InterlockError


def read_tools(wire: Sequence[WireTool] | None, path: str) -> tuple[Tool, ...] | None:
    """``None`` where the field is absent. Raises ``invalid_tools`` with the path in ``param``."""
    return None if wire is None else tuple(_tool(tool, f"{path}[{i}]") for i, tool in enumerate(wire))


def read_tool_choice(wire: Any, kinds: Collection[str] = ("function",)) -> ToolChoice | None:
    """A mode, a named tool, or ``allowed_tools``, in the nested shapes of chat completions or the flat ones of
    responses. kinds: types that a tool may have. Raises ``invalid_tools`` with param ``tool_choice``."""
    if wire is None:
        return None
    if wire in ("none", "auto", "required"):
        return ToolChoice(mode=wire)
    if isinstance(wire, dict):
        if wire.get("type") == "allowed_tools":
            return _allowed_tools(wire, kinds)
        if wire.get("type") in kinds:
            return ToolChoice(mode="named", name=_tool_name(wire, kinds))
    raise _wrong_choice("it must be `none`, `auto`, `required`, a function or allowed_tools")


def _tool(wire: WireTool, path: str) -> Tool:
    if wire.type != "function":
        raise InterlockError(
            "invalid_tools",
            f"only function tools are supported, not type `{wire.type[:100]}`",
            param=f"{path}.type",
            hint="custom tools are for /v1/responses" if wire.type == "custom" else None,
        )
    function = wire.function
    if function is None:
        hint = 'write {"type": "function", "function": {"name": ...}}' if wire.name is not None else None
        raise InterlockError(
            "missing_field", f"{path}.function is missing", param=f"{path}.function", hint=hint
        )
    for name, value in (("parameters", wire.parameters), ("strict", wire.strict)):
        if value is not None:  # dropped, the call would not be held to it
            raise InterlockError(
                "invalid_tools",
                f"{path}.{name} is in the wrong place",
                param=f"{path}.{name}",
                hint=f"move it to {path}.function.{name}",
            )
    parameters, param = function.parameters, f"{path}.function.parameters"
    return Tool(
        name=function.name,
        description=function.description,
        parameters=EMPTY_PARAMETERS if parameters is None else parameters_text(parameters, param),
        strict=function.strict,
        deferred=bool(wire.defer_loading or function.defer_loading),
    )


def _allowed_tools(wire: Mapping[str, Any], kinds: Collection[str]) -> ToolChoice:
    inner = wire.get("allowed_tools", wire)
    if not isinstance(inner, dict):
        raise _wrong_choice("`allowed_tools` must be an object")
    mode, tools = inner.get("mode"), inner.get("tools")
    if mode not in ("auto", "required"):
        raise _wrong_choice("the mode of allowed_tools must be `auto` or `required`")
    if not isinstance(tools, list):
        raise _wrong_choice("allowed_tools needs `tools`, an array of functions")
    return ToolChoice(mode=mode, allowed=tuple(_tool_name(tool, kinds) for tool in tools))


def _tool_name(wire: Any, kinds: Collection[str]) -> str:
    if not isinstance(wire, dict) or wire.get("type") not in kinds:
        raise _wrong_choice(f"only tools of type {' or '.join(f'`{kind}`' for kind in kinds)} can be chosen")
    function = wire.get("function", wire)
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not name:
        raise _wrong_choice('a function is chosen by name: {"type": "function", "function": {"name": ...}}')
    return name


def _wrong_choice(reason: str) -> InterlockError:
    return InterlockError("invalid_tools", f"tool_choice is wrong: {reason}", param="tool_choice")
