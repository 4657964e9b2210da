"""The tool rules of a request, applied once: ``GenerateRequest`` to ``ToolContext``.

Everything downstream (prompt, grammar, parser, answer) reads the ``ToolContext`` and nothing else.

- ``effective_tools`` are the request's tools, then those of messages in message order. All of
  them are in the prompt, whatever the tool choice, so that its prefix stays the same between turns.
- A deferred tool becomes one of them when the result of a tool refers to it, or a developer message declares it again.
- ``callable_tools`` are what the tool choice leaves: none of them, one, the allowed ones, or all.
- ``tool_constraints`` decides whether calls are held to the tools' schemas. ``auto``: where the request was
  promised something (a call must come, only some tools may be called, or a tool is strict); then every tool
  is exact. ``all``: wherever a call is possible. ``off``: never, and a request that needs it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from interlock.config import ToolConstraints
from interlock.core.request import GenerateRequest
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.resolve.text import require_unicode

LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def resolve_tools(request: GenerateRequest, default: ToolConstraints) -> ToolContext:
    """Resolve declarations, choice and policy. ``default``: the server's ``tool_constraints``.

    Raises ``invalid_tools`` for a wrong declaration or choice, ``conflicting_parameters`` where the policy
    ``off`` meets a request that needs a constraint.
    """
    declared = _declared_tools(request)
    effective, deferred = declared.tools(), tuple(tool for _, tool in declared.deferred.values())
    choice = _choice(request.tool_choice, effective, deferred)
    called = _callable_tools(choice, effective)
    needed_by, param = _reason(choice, effective, called)
    policy = request.tool_constraints or default
    if policy == "off" and needed_by:
        source = "this request" if request.tool_constraints else "the server"
        raise InterlockError(
            "conflicting_parameters",
            f"{needed_by}, which needs constrained tool calls, but {source} sets tool_constraints to off",
            param=param,
            hint="set tool_constraints to auto or all in the request",
        )
    if policy == "all" and called:
        needed_by = needed_by or "tool_constraints is all"
    return ToolContext(
        initial_tools=request.tools or (),
        effective_tools=effective,
        paths=tuple(path for path, _ in declared.known.values()),
        deferred_tools=deferred,
        callable_tools=called,
        tool_choice=choice,
        parallel_tool_calls=request.parallel_tool_calls is not False,
        constrained=bool(needed_by),
        constrained_reason=needed_by,
    )


@dataclass(slots=True)
class _Declared:
    """Tools by name, each with its path in the request. deferred: those that nothing has loaded so far."""

    known: dict[str, tuple[str, Tool]] = field(default_factory=dict)
    deferred: dict[str, tuple[str, Tool]] = field(default_factory=dict)

    def tools(self) -> tuple[Tool, ...]:
        return tuple(tool for _, tool in self.known.values())

    def add(self, path: str, tool: Tool) -> None:
        _check_declaration(tool, path)
        if tool.name in self.known or tool.name in self.deferred:
            raise InterlockError(
                "invalid_tools", f"duplicate tool name `{tool.name}`", param=f"{path}.function.name"
            )
        (self.deferred if tool.deferred else self.known)[tool.name] = (path, tool)

    def declare(self, path: str, tool: Tool) -> None:
        """By a message: a deferred tool that it declares again is loaded as the message has it."""
        if tool.deferred:
            raise InterlockError(
                "invalid_tools",
                "a tool that a message declares cannot be deferred: the message is what loads it",
                param=f"{path}.defer_loading",
            )
        self.deferred.pop(tool.name, None)
        self.add(path, tool)

    def load(self, path: str, name: str) -> None:
        if name in self.deferred:
            self.known[name] = self.deferred.pop(name)
        elif name not in self.known:
            raise InterlockError(
                "invalid_tools", f"a tool_reference names `{name}`, but there is no such tool", param=path
            )


def _declared_tools(request: GenerateRequest) -> _Declared:
    if request.tools is not None and not request.tools:
        raise InterlockError(
            "invalid_tools", "`tools` must not be an empty array; leave it out instead", param="tools"
        )
    declared = _Declared()
    for index, tool in enumerate(request.tools or ()):
        declared.add(f"tools[{index}]", tool)
    for at, message in enumerate(request.messages):
        for index, name in enumerate(message.loads):
            declared.load(f"messages[{at}].loads[{index}]", name)
        for index, tool in enumerate(message.tools):
            declared.declare(f"messages[{at}].tools[{index}]", tool)
    if declared.deferred and not declared.known:
        raise InterlockError(
            "invalid_tools",
            "every tool is deferred and none is loaded, so the model would know of none",
            param="tools",
            hint="at least one tool, the one that finds the others, must not be deferred",
        )
    return declared


def _check_declaration(tool: Tool, path: str) -> None:
    if not LEGAL_NAME.fullmatch(tool.name):
        raise InterlockError(
            "invalid_tools",
            f"tool name {tool.name!r} is not 1 to 64 letters, digits, underscores or dashes",
            param=f"{path}.function.name",
        )
    require_unicode(tool.description or "", code="invalid_tools", param=f"{path}.function.description")
    require_unicode(tool.parameters, code="invalid_schema", param=f"{path}.function.parameters")


def _choice(choice: ToolChoice | None, effective: Sequence[Tool], deferred: Sequence[Tool]) -> ToolChoice:
    if choice is None:
        return ToolChoice(mode="auto" if effective else "none")
    if choice.mode == "none":
        return choice
    if not effective:
        raise InterlockError(
            "invalid_tools", "tool_choice requires at least one available tool", param="tool_choice"
        )
    names = {tool.name for tool in effective}
    wanted = (choice.name or "",) if choice.mode == "named" else choice.allowed
    unknown = [name for name in wanted or () if name not in names]
    if unknown:
        listed = ", ".join(f"`{name}`" for name in unknown)
        is_deferred = {tool.name for tool in deferred}.issuperset(unknown)
        raise InterlockError(
            "invalid_tools",
            f"tool_choice function {listed} was not found in the available tools",
            param="tool_choice",
            hint="it is deferred, and no message has loaded it yet" if is_deferred else None,
        )
    if wanted is not None and not wanted:
        raise InterlockError(
            "invalid_tools",
            "tool_choice allows no tool: its list of allowed tools is empty",
            param="tool_choice",
        )
    return choice


def _callable_tools(choice: ToolChoice, effective: tuple[Tool, ...]) -> tuple[Tool, ...]:
    if choice.mode == "none":
        return ()
    wanted = {choice.name} if choice.mode == "named" else choice.allowed
    return effective if wanted is None else tuple(tool for tool in effective if tool.name in wanted)


def _reason(choice: ToolChoice, effective: Sequence[Tool], called: Sequence[Tool]) -> tuple[str, str]:
    """Why calls must be constrained and the field that says so; empty strings where nothing asks for it."""
    if choice.mode == "named":
        return f"tool_choice names `{choice.name}`", "tool_choice"
    if choice.mode == "required":
        return "tool_choice requires a call", "tool_choice"
    if len(called) < len(effective) and called:
        return "tool_choice allows only some of the tools", "tool_choice"
    strict = next((tool.name for tool in called if tool.strict), None)
    if strict is not None:
        return f"tool `{strict}` is strict", "tools"
    return "", ""
