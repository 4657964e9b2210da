"""What a chat template can take, found by asking it: each quirk is seen in what a probe renders to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.errors import InterlockError
from interlock.families.base import ReasoningFormat
from interlock.families.wire.probe import numbers_by_turn, probe_tool, probe_turn
from interlock.families.wire.template import ChatTemplate

_PROBE = "interlock probe"
_USER: Mapping[str, Any] = {"role": "user", "content": "a question"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateQuirks:
    """knows_system, knows_developer: a first message of that role reaches the prompt. tools_required: ``tools``
    must be a list, also where there are none. description_required: each tool needs a description.
    arguments_as_text: calls hold their arguments as JSON text. single_calls: a message holds at most one call.
    numbers_calls_by_turn: ids of calls are its own, numbered from 0 in each turn.
    drops_calls: it shows tools, but leaves out the calls of earlier turns. thinks: a turn with reasoning in it, or the
    beginning of one, shows the family's markers. switches: the prompt depends on whether thinking is on."""

    knows_system: bool
    knows_developer: bool
    tools_required: bool
    description_required: bool
    arguments_as_text: bool
    single_calls: bool
    numbers_calls_by_turn: bool
    drops_calls: bool
    thinks: bool
    switches: bool


def find_quirks(template: ChatTemplate, format_: ReasoningFormat | None) -> TemplateQuirks:
    """Probe ``template`` with a few short conversations."""
    tools_required = _renders(template, [_USER], None) is None and _renders(template, [_USER], []) is not None
    no_tools: Sequence[Mapping[str, Any]] | None = [] if tools_required else None
    turn = probe_turn(template)
    return TemplateQuirks(
        knows_system=_shows_role(template, "system", no_tools),
        # Templates that print any role would show a word that their model never saw.
        knows_developer="developer" in template.source and _shows_role(template, "developer", no_tools),
        tools_required=tools_required,
        description_required=_renders(template, [_USER], [probe_tool(None)]) is None
        and _renders(template, [_USER], [probe_tool("")]) is not None,
        arguments_as_text=turn is not None and turn.arguments_as_text,
        single_calls=turn is not None and turn.single,
        numbers_calls_by_turn=turn is not None and numbers_by_turn(template, turn.arguments_as_text),
        drops_calls=turn is None and "tools" in template.source,
        thinks=format_ is not None and _shows_thinking(template, format_, no_tools),
        switches=format_ is not None
        and len({_renders(template, [_USER], no_tools, format_.switch(on)) for on in (False, True)}) > 1,
    )


def _shows_thinking(
    template: ChatTemplate, format_: ReasoningFormat, tools: Sequence[Mapping[str, Any]] | None
) -> bool:
    if format_.open in template.source or format_.close in template.source:
        return True
    text = _renders(template, [_USER], tools) or ""
    return format_.open in text or format_.close in text


def _shows_role(template: ChatTemplate, role: str, tools: Sequence[Mapping[str, Any]] | None) -> bool:
    text = _renders(template, [{"role": role, "content": _PROBE}, _USER], tools)
    return text is not None and _PROBE in text


def _renders(
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    variables: Mapping[str, Any] | None = None,
) -> str | None:
    try:
        return template.render(messages, tools, variables)
    except InterlockError:
        return None
