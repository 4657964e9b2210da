"""``interlock render``: a conversation on standard input, the prompt a model would get on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from interlock import env
from interlock.cli.parse import read_tools
from interlock.cli.shared import EXISTING_FILE
from interlock.core.messages import Message, ToolCall
from interlock.core.request import ReasoningOptions
from interlock.core.tools import Tool
from interlock.families import generic, registry
from interlock.families.wire import json_text
from interlock.families.wire.render import PromptRenderer
from interlock.provision.resolve import resolve_model
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription
from interlock.tokenization.load import describe

_ROLES = ("system", "developer", "user", "assistant", "tool")


@click.command("render")
@click.option(
    "--family", "family_name", help="Model family; see `interlock formats`. Default: by the template."
)
@click.option("--model", help="Take chat template and vocabulary from this model.")
@click.option(
    "--template",
    type=EXISTING_FILE,
    help="Take the chat template from this file.",
)
@click.option(
    "--tools",
    "tools_file",
    type=EXISTING_FILE,
    help="JSON file with the declared tools, as in a request.",
)
@click.option("--thinking/--no-thinking", "thinking", default=None, help="Switch thinking on or off.")
@click.option("--effort", help="Reasoning effort.")
@click.option("--json", "as_line", is_flag=True, help="Print one line of JSON with the ids.")
def command(
    family_name: str | None,
    model: str | None,
    template: Path | None,
    tools_file: Path | None,
    thinking: bool | None,
    effort: str | None,
    as_line: bool,
) -> None:
    """Render the messages on standard input (a JSON list, as in a request) to the prompt of the next turn.

    Without a model or a template, turns are framed as ChatML; tools are told by a system prompt, and calls are
    written as the family writes them.
    """
    if family_name is None and model is None and template is None:
        raise click.UsageError("say which --family, --model or --template")
    description = _description(model, template)
    family = registry.by_name(family_name) if family_name else registry.choose(description).family
    if description.chat_template is None and family.template is None:
        family = replace(family, tool_prompt=generic.FAMILY.tool_prompt)
    messages = _read_messages(sys.stdin.buffer.read().decode("utf-8", "replace"))
    tools = read_tools(tools_file) if tools_file else ()
    prompt = PromptRenderer(family, description).render(
        messages, tools, ReasoningOptions(enabled=thinking, effort=effort)
    )
    if as_line:
        shown = {"family": family.name, "text": prompt.text, "ids": prompt.ids, "thinking": prompt.thinking}
        click.echo(json.dumps(shown, ensure_ascii=False))
    else:
        click.echo(prompt.text, nl=False)


def _description(model: str | None, template: Path | None) -> ModelDescription:
    if model is not None:
        description = describe(resolve_model(model, cache=env.cache_dir()))
    else:
        description = ModelDescription(
            tokenizer=byte_tokenizer(),
            architecture="",
            name="",
            chat_template=None,
            context_tokens=0,
            bos_token="",
            eos_token="",
        )
    return description if template is None else replace(description, chat_template=template.read_text("utf-8"))


def _read_messages(text: str) -> tuple[Message, ...]:
    try:
        items = json_text.loads(text)
        return tuple(_message(item) for item in (items["messages"] if isinstance(items, dict) else items))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(f"standard input holds no JSON list of messages: {error!r}") from error


def _message(item: Mapping[str, Any]) -> Message:
    role = item["role"]
    if role not in _ROLES:
        raise ValueError(f"unknown role {role!r}")
    return Message(
        role=role,
        content=item.get("content"),
        reasoning=item.get("reasoning") or item.get("reasoning_content"),
        tool_calls=tuple(_call(call) for call in item.get("tool_calls") or ()),
        tool_call_id=item.get("tool_call_id"),
        name=item.get("name"),
        tools=tuple(_tool(tool) for tool in item.get("tools") or ()),
    )


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function.get("arguments") or "{}"
    text = arguments if isinstance(arguments, str) else json_text.dumps(arguments)
    return ToolCall(id=call.get("id", ""), name=function["name"], arguments=text)


def _tool(tool: Mapping[str, Any]) -> Tool:
    function = tool.get("function", tool)
    parameters = json_text.dumps(function.get("parameters") or {})
    return Tool(name=function["name"], description=function.get("description"), parameters=parameters)
