"""The rules of a conversation that no single message can show.

Wire shape (roles, types of fields) is the endpoint's business. A tool result must answer a call of an
earlier assistant message. A call without a result is allowed: agents are interrupted, and the model can
cope. A conversation must not end with the assistant: whether to go on with that message or to write
another one would be a guess.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from interlock.core.messages import Message, ToolCall
from interlock.errors import InterlockError
from interlock.resolve.text import require_unicode


def resolve_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same conversation, checked, with empty call arguments spelt ``{}``.

    Raises ``invalid_messages`` with the path of the first field that breaks a rule.
    """
    if not messages:
        _refuse("messages", "a conversation needs at least one message")
    seen_calls: set[str] = set()
    resolved = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        _check_fields(message, path)
        if message.role == "tool" and message.tool_call_id not in seen_calls:
            _refuse(
                f"{path}.tool_call_id",
                f"no earlier assistant message has a tool call with the id {message.tool_call_id!r}",
            )
        calls = _resolve_calls(message.tool_calls, path)
        seen_calls.update(call.id for call in calls)
        resolved.append(replace(message, tool_calls=calls) if calls else message)
    if messages[-1].role == "assistant":
        _refuse(
            f"messages[{len(messages) - 1}].role",
            "the last message is the assistant's; continuing an answer is not supported, so the conversation"
            " must end with a message of another role",
        )
    return tuple(resolved)


def _check_fields(message: Message, path: str) -> None:
    if message.role == "assistant":
        if message.content is None and not message.reasoning and not message.tool_calls:
            _refuse(f"{path}.content", "an assistant message needs content, reasoning or tool calls")
    elif message.tool_calls:
        _refuse(f"{path}.tool_calls", f"a {message.role} message cannot have tool calls")
    elif message.content is None and not message.tools:
        _refuse(f"{path}.content", f"a {message.role} message needs content")
    if message.tools and message.role != "developer":
        _refuse(f"{path}.tools", f"only a developer message can declare tools, not a {message.role} message")
    if message.role == "tool" and not message.tool_call_id:
        _refuse(f"{path}.tool_call_id", "a tool message needs the id of the call it answers")
    if message.role != "tool" and message.tool_call_id is not None:
        _refuse(f"{path}.tool_call_id", f"a {message.role} message cannot have a tool_call_id")
    for name in ("content", "reasoning", "name"):
        require_unicode(getattr(message, name) or "", code="invalid_messages", param=f"{path}.{name}")


def _resolve_calls(calls: Sequence[ToolCall], path: str) -> tuple[ToolCall, ...]:
    ids: set[str] = set()
    resolved = []
    for index, call in enumerate(calls):
        at = f"{path}.tool_calls[{index}]"
        if not call.id:
            _refuse(f"{at}.id", "a tool call needs an id")
        if call.id in ids:
            _refuse(f"{at}.id", f"duplicate tool call id {call.id!r} in one message")
        if not call.name:
            _refuse(f"{at}.function.name", "a tool call needs the name of its function")
        ids.add(call.id)
        require_unicode(call.name, code="invalid_messages", param=f"{at}.function.name")
        arguments = call.arguments if call.arguments.strip() else "{}"
        _check_arguments(arguments, f"{at}.function.arguments")
        resolved.append(replace(call, arguments=arguments))
    return tuple(resolved)


def _check_arguments(arguments: str, param: str) -> None:
    require_unicode(arguments, code="invalid_messages", param=param)
    try:
        # Numbers stay text: their size is nobody's business here.
        value: Any = json.loads(arguments, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except RecursionError:
        _refuse(param, "the arguments of a tool call are nested too deeply")
    except ValueError as error:
        _refuse(param, f"the arguments of a tool call must be a JSON object: {error}")
    if not isinstance(value, dict):
        _refuse(param, "the arguments of a tool call must be a JSON object")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse(param: str, message: str) -> NoReturn:
    raise InterlockError("invalid_messages", message, param=param)
