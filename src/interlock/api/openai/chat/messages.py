"""Wire messages to ``core.messages``: one to one, in order, so that indices in errors are the client's.

Rules between messages (a tool result answers a call, who speaks last) are checked in ``resolve``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from interlock.api.json_body import parse_text
from interlock.api.openai.chat.wire import WireMessage, WirePart, WireToolCall
from interlock.api.openai.tools import read_tools
from interlock.core.messages import Message, ToolCall
from interlock.errors import InterlockError


def read_messages(wire: Sequence[WireMessage], *, max_nesting: int) -> tuple[Message, ...]:
    """Raises ``invalid_messages``, ``missing_field`` or ``unsupported_parameter`` with the path in ``param``."""
    return tuple(_message(message, f"messages[{i}]", max_nesting) for i, message in enumerate(wire))


def _message(wire: WireMessage, path: str, max_nesting: int) -> Message:
    _refuse_legacy(wire, path)
    tools = read_tools(wire.tools or (), f"{path}.tools")
    content, loads = _content(wire, path), _loads(wire, path)
    role = wire.role
    assert role != "function", "refused above"
    if tools and role == "system":
        if content:
            _refuse(
                f"{path}.content",
                "a system message that declares tools must have no content",
                "put the text into a message of its own, or use role developer",
            )
        role = "developer"  # both spellings of a mid-conversation declaration are one thing below
    return Message(
        role=role,
        content=content,
        reasoning=wire.reasoning_content or wire.reasoning,
        tool_calls=_calls(wire.tool_calls or (), f"{path}.tool_calls", max_nesting),
        tool_call_id=wire.tool_call_id,
        name=wire.name,
        tools=tools or (),
        loads=loads,
    )


def _refuse_legacy(wire: WireMessage, path: str) -> None:
    if wire.role == "function":
        _refuse(f"{path}.role", "role `function` is not supported", "use role `tool` with tool_call_id")
    if wire.function_call is not None:
        _refuse(f"{path}.function_call", "`function_call` is not supported", "use tool_calls")
    if wire.tools and wire.role not in ("system", "developer"):
        _refuse(f"{path}.tools", f"only a developer message can declare tools, not a {wire.role} message")


def _content(wire: WireMessage, path: str) -> str | None:
    """Parts are joined by a line break, as the other servers of the field do."""
    if isinstance(wire.content, str):
        return wire.content
    if wire.content is not None:
        if not wire.content:
            _refuse(f"{path}.content", "content must not be an empty array")
        parts = (_part(part, f"{path}.content[{i}]") for i, part in enumerate(wire.content))
        return "\n".join(part for part in parts if part is not None)
    if wire.role == "assistant":
        return None if wire.tool_calls else wire.refusal
    if wire.tools:
        return ""
    raise InterlockError("missing_field", f"{path}.content is missing", param=f"{path}.content")


def _loads(wire: WireMessage, path: str) -> tuple[str, ...]:
    """Names of the deferred tools that a tool's result refers to."""
    if wire.content is None or isinstance(wire.content, str):
        return ()
    loads = []
    for index, part in enumerate(wire.content):
        if part.type != "tool_reference":
            continue
        at, name = f"{path}.content[{index}]", part.name or part.tool_name
        if wire.role != "tool":
            _refuse(at, "only the content of a tool message can hold a tool_reference")
        if not name:
            raise InterlockError("missing_field", f"{at}.name is missing", param=f"{at}.name")
        loads.append(name)
    return tuple(loads)


def _part(part: WirePart, path: str) -> str | None:
    """``None`` for a part without text."""
    if part.type == "tool_reference":
        return None
    text = {"text": part.text, "refusal": part.refusal}.get(part.type)
    if text is not None:
        return text
    if part.type in ("text", "refusal"):
        field = f"{path}.{part.type}"
        raise InterlockError("missing_field", f"{field} is missing", param=field)
    raise InterlockError(
        "unsupported_parameter",
        f"content parts of type `{part.type[:100]}` are not supported, only `text`",
        param=path,
    )


def _calls(wire: Sequence[WireToolCall], path: str, max_nesting: int) -> tuple[ToolCall, ...]:
    return tuple(_call(call, f"{path}[{i}]", max_nesting) for i, call in enumerate(wire))


def _call(wire: WireToolCall, path: str, max_nesting: int) -> ToolCall:
    if wire.type != "function":
        _refuse(f"{path}.type", f"tool calls of type `{wire.type[:100]}` are not supported, only `function`")
    if wire.function is None:
        raise InterlockError("missing_field", f"{path}.function is missing", param=f"{path}.function")
    arguments = wire.function.arguments.strip() or "{}"
    param = f"{path}.function.arguments"
    try:
        arguments = parse_text(arguments, max_nesting=max_nesting)
    except ValueError as error:
        _refuse(param, f"{param} must be the text of a JSON object, but it is {error}")
    if arguments.kind != "object":
        _refuse(param, f"{param} must be the text of a JSON object, not of {_article(arguments.kind)}")
    return ToolCall(id=wire.id, name=wire.function.name, arguments=str(arguments))


def _article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind == 'array' else 'a'} {kind}"


def _refuse(param: str, message: str, hint: str | None = None) -> NoReturn:
    raise InterlockError("invalid_messages", message, param=param, hint=hint)
