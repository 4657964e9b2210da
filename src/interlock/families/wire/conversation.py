"""Messages and tools as chat templates know them: plain dictionaries in Hugging Face's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from interlock.core.messages import Message, ToolCall
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families.base import ModelFamily, ToolPrompt
from interlock.families.wire import json_text
from interlock.families.wire.quirks import TemplateQuirks
from interlock.families.wire.spell import spell_calls
from interlock.families.wire.template import ChatTemplate

Clean = Callable[[Any], Any]  # what makes client text harmless: see taint.py
TemplateMessage = dict[str, Any]


def client_texts(messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[str]:
    """Every text a client wrote, JSON still unparsed."""
    for message in messages:
        yield from filter(None, (message.content, message.reasoning, message.name, message.tool_call_id))
        for call in message.tool_calls:
            yield from (call.id, call.name, call.arguments)
        yield from client_texts((), message.tools)
    for tool in tools:
        yield from (tool.name, tool.description or "", tool.parameters)


def template_tool(tool: Tool, clean: Clean, *, description_required: bool) -> dict[str, Any]:
    """``strict`` is left out: it is an order to the server, not to the model."""
    function: dict[str, Any] = {"name": clean(tool.name)}
    if tool.description is not None or description_required:
        function["description"] = clean(tool.description or "")
    function["parameters"] = clean(json_text.loads(tool.parameters))
    return {"type": "function", "function": function}


def template_messages(
    messages: Sequence[Message], family: ModelFamily, quirks: TemplateQuirks, clean: Clean
) -> list[TemplateMessage]:
    """One dictionary a message. Developer messages become system messages where the template does not know
    the role; the name of a tool's result is looked up from its call where the client gave none.

    Raises ``InterlockError`` (``invalid_messages``).
    """
    names: dict[str, str] = {}
    out: list[TemplateMessage] = []
    for index, message in enumerate(messages):
        names.update({call.id: call.name for call in message.tool_calls})
        role = message.role
        if role == "developer" and not quirks.knows_developer:
            role = "system"
        if message.tools and not message.content and not family.declares_in_messages and role != "tool":
            continue  # its tools are among those of the request
        item: TemplateMessage = {"role": role, "content": clean(message.content or "")}
        if message.reasoning is not None and family.reasoning is not None:
            item[family.reasoning.history_key] = clean(message.reasoning)
        if message.tool_calls and message.content and message.reasoning and _takes_one_text(family):
            item["content"] = clean(f"{message.reasoning}\n\n{message.content}")
            item.pop(family.reasoning.history_key if family.reasoning else "", None)
        if message.tool_calls:
            item["tool_calls"] = [
                _template_call(
                    call, clean, quirks.arguments_as_text, f"messages[{index}].tool_calls[{position}]"
                )
                for position, call in enumerate(message.tool_calls)
            ]
        name = message.name or names.get(message.tool_call_id or "")
        if name is not None:
            item["name"] = clean(name)
        if message.tool_call_id is not None:
            item["tool_call_id"] = clean(message.tool_call_id)
        declares: TemplateMessage = {}
        if message.tools and (role != "tool" or family.declares_in_messages):
            required = quirks.description_required
            shown = [template_tool(tool, clean, description_required=required) for tool in message.tools]
            declares = {"tools": shown}
        if role == "tool" and declares:
            out += [item, {"role": "system", "content": "", **declares}]
        elif role != message.role and out and out[-1]["role"] == "system" and not message.tools:
            out[-1]["content"] = _joined(out[-1]["content"], item["content"])
        else:
            out.append({**item, **declares})
    return out


def _takes_one_text(family: ModelFamily) -> bool:
    """Templates of families with channels have one place for text in front of a call, which is thinking."""
    return family.answer is not None and bool(family.answer.lead_open)


def _template_call(call: ToolCall, clean: Clean, as_text: bool, where: str) -> dict[str, Any]:
    try:
        value = json_text.loads(call.arguments)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InterlockError(
            "invalid_messages",
            "the arguments of a tool call must be the JSON text of an object",
            param=f"{where}.function.arguments",
        )
    return {
        "id": clean(call.id),
        "type": "function",
        "function": {
            "name": clean(call.name),
            "arguments": json_text.dumps(clean(value)) if as_text else clean(value),
        },
    }


def with_tool_prompt(
    messages: list[TemplateMessage],
    tools: list[dict[str, Any]] | None,
    family: ModelFamily,
    prompt: ToolPrompt,
    template: ChatTemplate,
    seam: str,
) -> list[TemplateMessage]:
    """The conversation for a template that shows no tools: tools in the system message, earlier calls and
    results as text."""
    out = [with_written_calls(message, family) for message in messages]
    out = _with_written_results(out, prompt, template, seam)
    if not tools:
        return out
    text = template.snippet(prompt.system, {"tools": tools}, seam)
    if out and out[0]["role"] == "system":
        return [{**out[0], "content": _joined(out[0]["content"], text)}, *out[1:]]
    return [{"role": "system", "content": text}, *out]


def with_written_calls(message: TemplateMessage, family: ModelFamily) -> TemplateMessage:
    """The calls of a message as a part of its text."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    functions = [call["function"] for call in calls]
    text = spell_calls(family.tool_calls, [(function["name"], function["arguments"]) for function in functions])
    content = message["content"]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**rest, "content": content + family.tool_calls.separator + text if content else text}


def _with_written_results(
    messages: list[TemplateMessage], prompt: ToolPrompt, template: ChatTemplate, seam: str
) -> list[TemplateMessage]:
    """Results that follow each other answer one turn, so they share a message."""
    out: list[TemplateMessage] = []
    after_result = False
    for message in messages:
        if message["role"] != "tool":
            out.append(message)
            after_result = False
            continue
        known = {"content": message["content"], "name": message.get("name", "")}
        text = template.snippet(prompt.result, known, seam)
        if after_result:
            text = f"{out.pop()['content']}\n{text}"
        out.append({"role": prompt.result_role, "content": text})
        after_result = True
    return out


def without_system(messages: list[TemplateMessage]) -> list[TemplateMessage]:
    """For a template that takes no system message: its text begins the first message of the user."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    out = [message for message in messages if message["role"] != "system"]
    first = next((i for i, message in enumerate(out) if message["role"] == "user"), None)
    if not system:
        return out
    text = "\n\n".join(system)
    if first is None:
        return [{"role": "user", "content": text}, *out]
    out[first] = {**out[first], "content": _joined(text, out[first]["content"])}
    return out


def _joined(first: str, second: str) -> str:
    return f"{first}\n\n{second}" if first and second else first or second
