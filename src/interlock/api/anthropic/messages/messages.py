"""Wire messages to ``core.messages``.

One wire message can become several: each tool result is a message of its own, text stays in its place between
them. So the place of each message in the body is kept, for errors found further down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from interlock.api.anthropic.messages.wire import WireBlock, WireMessage
from interlock.core.messages import Message, ToolCall
from interlock.errors import InterlockError

Placed = tuple[str, Message]


def read_messages(system: str | Sequence[WireBlock] | None, wire: Sequence[WireMessage]) -> list[Placed]:
    """Messages with their places, the system prompt first. Raises ``invalid_messages``, ``missing_field`` or
    ``unsupported_parameter`` with the path in ``param``."""
    out: list[Placed] = []
    if system:
        out.append(("system", Message(role="system", content=_text(system, "system"))))
    for index, message in enumerate(wire):
        out += _message(message, f"messages[{index}]")
    return out


def _message(wire: WireMessage, path: str) -> list[Placed]:
    if isinstance(wire.content, str):
        return [(path, Message(role=wire.role, content=wire.content))]
    if not wire.content:
        _refuse(f"{path}.content", "content must not be an empty array")
    if wire.role == "assistant":
        return [(path, _assistant(wire.content, f"{path}.content"))]
    if wire.role == "system":
        return [(path, Message(role="system", content=_text(wire.content, f"{path}.content")))]
    return list(_user(wire.content, f"{path}.content"))


def _user(blocks: Sequence[WireBlock], path: str) -> Iterator[Placed]:
    texts: list[str] = []
    first = path
    for index, block in enumerate(blocks):
        at = f"{path}[{index}]"
        if block.type != "tool_result":
            first = first if texts else at
            texts.append(_text_of(block, at))
            continue
        if texts:
            yield first, Message(role="user", content="\n".join(texts))
            texts = []
        yield at, _tool_result(block, at)
    if texts:
        yield first, Message(role="user", content="\n".join(texts))


def _tool_result(block: WireBlock, path: str) -> Message:
    if not block.tool_use_id:
        _missing(f"{path}.tool_use_id")
    blocks = block.content or ""
    loads: list[str] = []
    if not isinstance(blocks, str):
        placed = [(f"{path}.content[{index}]", inner) for index, inner in enumerate(blocks)]
        loads = [_reference(inner, at) for at, inner in placed if inner.type == "tool_reference"]
        blocks = "\n".join(_text_of(inner, at) for at, inner in placed if inner.type != "tool_reference")
    return Message(
        role="tool",
        content=f"Error: {blocks}" if block.is_error else blocks,
        tool_call_id=block.tool_use_id,
        loads=tuple(loads),
    )


def _reference(block: WireBlock, path: str) -> str:
    if not block.tool_name:
        _missing(f"{path}.tool_name")
    return block.tool_name


def _assistant(blocks: Sequence[WireBlock], path: str) -> Message:
    texts, thoughts, calls = [], [], []
    for index, block in enumerate(blocks):
        at = f"{path}[{index}]"
        match block.type:
            case "tool_use":
                calls.append(_tool_use(block, at))
            case "thinking":
                thoughts.append(block.thinking or "")
            case _:
                texts.append(_text_of(block, at))
    return Message(
        role="assistant",
        content="\n".join(texts) if texts or not (calls or thoughts) else None,
        reasoning="\n".join(thoughts) or None,
        tool_calls=tuple(calls),
    )


def _tool_use(block: WireBlock, path: str) -> ToolCall:
    for field, value in (("id", block.id), ("name", block.name), ("input", block.input)):
        if not value:
            _missing(f"{path}.{field}")
    assert block.id is not None
    assert block.name is not None
    assert block.input is not None
    if block.input.kind != "object":
        _refuse(f"{path}.input", f"the input of a tool must be an object, not of type {block.input.kind}")
    return ToolCall(id=block.id, name=block.name, arguments=str(block.input))


def _text(content: str | Sequence[WireBlock], path: str) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_text_of(block, f"{path}[{index}]") for index, block in enumerate(content))


def _text_of(block: WireBlock, path: str) -> str:
    if block.type != "text":
        raise InterlockError(
            "unsupported_parameter",
            f"content blocks of type `{block.type[:100]}` are not supported here",
            param=path,
        )
    if block.text is None:
        _missing(f"{path}.text")
    return block.text


def _missing(param: str) -> NoReturn:
    raise InterlockError("missing_field", f"{param} is missing", param=param)


def _refuse(param: str, message: str) -> NoReturn:
    raise InterlockError("invalid_messages", message, param=param)
