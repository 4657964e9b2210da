"""Input items to ``core.messages``.

What a model said in one turn comes as several items (reasoning, a message, calls); they become one message. So
the place of each message in the body is kept, for errors found further down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from interlock.api.fields import unsupported
from interlock.api.json_body import parse_text
from interlock.api.openai.responses.custom import call_arguments
from interlock.api.openai.responses.tools import read_tools
from interlock.api.openai.responses.wire import WireItem, WirePart
from interlock.core.messages import Message, ToolCall
from interlock.errors import InterlockError

Placed = tuple[str, Message]
_TEXT_PARTS = ("input_text", "output_text", "text", "reasoning_text", "summary_text")


def read_items(items: Sequence[tuple[str, WireItem]], *, max_nesting: int) -> list[Placed]:
    """Messages with their places. items: with theirs. Raises ``invalid_messages``, ``missing_field`` or
    ``unsupported_parameter`` with the path in ``param``."""
    out: list[Placed] = []
    turn = _Turn()
    for path, item in items:
        kind = item.type or "message"
        if kind in ("function_call", "custom_tool_call"):
            turn.add_call(path, _call(item, path, max_nesting))
        elif kind == "reasoning":
            out += turn.end() if turn.calls or turn.content is not None else []
            turn.add_reasoning(path, _reasoning(item, path))
        elif kind == "message" and item.role == "assistant":
            out += turn.end() if turn.calls or turn.content is not None else []
            turn.add_content(path, _content(item.content, f"{path}.content"))
        else:
            out += turn.end()
            out.append((path, _other(item, kind, path)))
    return out + turn.end()


@dataclass(slots=True)
class _Turn:
    """What the model said since somebody else spoke."""

    path: str = ""
    content: str | None = None
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)

    def add_call(self, path: str, call: ToolCall) -> None:
        self.path = self.path or path
        self.calls.append(call)

    def add_reasoning(self, path: str, text: str) -> None:
        self.path = self.path or path
        self.reasoning = f"{self.reasoning}\n{text}" if self.reasoning else text

    def add_content(self, path: str, text: str) -> None:
        self.path = self.path or path
        self.content = text

    def end(self) -> list[Placed]:
        path, message = (
            self.path,
            Message(
                role="assistant",
                content=self.content if self.content is not None or self.calls or self.reasoning else "",
                reasoning=self.reasoning or None,
                tool_calls=tuple(self.calls),
            ),
        )
        self.path, self.content, self.reasoning, self.calls = "", None, "", []
        return [(path, message)] if path else []


def _other(item: WireItem, kind: str, path: str) -> Message:
    match kind:
        case "message":
            if item.role is None:
                _missing(f"{path}.role")
            return Message(role=item.role, content=_content(item.content, f"{path}.content"))
        case "function_call_output" | "custom_tool_call_output":
            if not item.call_id:
                _missing(f"{path}.call_id")
            return Message(
                role="tool", content=_content(item.output, f"{path}.output"), tool_call_id=item.call_id
            )
        case "additional_tools":
            tools = read_tools(item.tools or (), f"{path}.tools")
            return Message(role="developer", content="", tools=tools)
    raise (
        unsupported(f"{path}.type `{kind[:100]}`")
        if kind != "item_reference"
        else unsupported(f"{path}.type `item_reference`", "send the item itself, or use previous_response_id")
    )


def _call(item: WireItem, path: str, max_nesting: int) -> ToolCall:
    for name, value in (("call_id", item.call_id), ("name", item.name)):
        if not value:
            _missing(f"{path}.{name}")
    assert item.call_id is not None
    assert item.name is not None
    if item.type == "custom_tool_call":
        if item.input is None:
            _missing(f"{path}.input")
        return ToolCall(id=item.call_id, name=item.name, arguments=call_arguments(item.input))
    return ToolCall(id=item.call_id, name=item.name, arguments=_arguments(item, path, max_nesting))


def _arguments(item: WireItem, path: str, max_nesting: int) -> str:
    param = f"{path}.arguments"
    if not isinstance(item.arguments, str):
        _missing(param) if item.arguments is None else _refuse(param, f"{param} must be a string")
    try:
        text = parse_text(item.arguments.strip() or "{}", max_nesting=max_nesting)
    except ValueError as error:
        _refuse(param, f"{param} must be the text of a JSON object, but it is {error}")
    if text.kind != "object":
        _refuse(param, f"{param} must be the text of a JSON object, not of type {text.kind}")
    return str(text)


def _reasoning(item: WireItem, path: str) -> str:
    if item.content:
        return _content(item.content, f"{path}.content")
    return _content(item.summary or "", f"{path}.summary")


def _content(content: str | Sequence[WirePart] | None, path: str) -> str:
    if content is None:
        _missing(path)
    if isinstance(content, str):
        return content
    return "\n".join(_part(part, f"{path}[{index}]") for index, part in enumerate(content))


def _part(part: WirePart, path: str) -> str:
    text = part.refusal if part.type == "refusal" else part.text
    if part.type != "refusal" and part.type not in _TEXT_PARTS:
        raise InterlockError(
            "unsupported_parameter",
            f"content parts of type `{part.type[:100]}` are not supported, only text",
            param=path,
        )
    if text is None:
        _missing(f"{path}.{'refusal' if part.type == 'refusal' else 'text'}")
    return text


def _missing(param: str) -> NoReturn:
    raise InterlockError("missing_field", f"{param} is missing", param=param)


def _refuse(param: str, message: str) -> NoReturn:
    raise InterlockError("invalid_messages", message, param=param)
