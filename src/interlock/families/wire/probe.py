"""A conversation with one call, to see how a chat template writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.errors import InterlockError
from interlock.families.wire import json_text
from interlock.families.wire.template import ChatTemplate

PROBE_CALL: tuple[str, Mapping[str, Any]] = ("interlock_probe", {"key": "a value"})
PROBE_ID = "probe0000"
_SECOND = "interlock_second"
_QUESTION = "interlock question"


@dataclass(frozen=True, slots=True)
class ProbeTurn:
    """text: the prompt after the question. arguments_as_text: the template wants arguments as JSON text.
    single: it cannot write two calls in one message."""

    text: str
    arguments_as_text: bool
    single: bool


def probe_turn(template: ChatTemplate) -> ProbeTurn | None:
    """How ``template`` writes the probe call; ``None`` if it refuses it in every shape, or leaves it out."""
    name, arguments = PROBE_CALL
    for as_text in (False, True):
        for content in ("", None):
            known = json_text.dumps(dict(arguments)) if as_text else dict(arguments)
            text = _render(template, [(name, known)], content)
            if text is not None and name in text.partition(_QUESTION)[2]:
                two = _render(template, [(name, known), (_SECOND, known)], content)
                return ProbeTurn(text.partition(_QUESTION)[2], as_text, two is None or _SECOND not in two)
    return None


def probe_tool(description: str | None, name: str = "probe") -> dict[str, Any]:
    """A tool as templates see it."""
    described = {} if description is None else {"description": description}
    parameters = {"type": "object", "properties": {"key": {"type": "string", "description": "a key"}}}
    return {"type": "function", "function": {"name": name, **described, "parameters": parameters}}


def _render(template: ChatTemplate, calls: list[tuple[str, Any]], content: str | None) -> str | None:
    shown = [
        {"id": f"probe{number:04}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    turns: list[Mapping[str, Any]] = [
        {"role": "user", "content": _QUESTION},
        {"role": "assistant", "content": content, "tool_calls": shown},
    ]
    for number, (name, _) in enumerate(calls):
        turns.append({"role": "tool", "content": "a result", "name": name, "tool_call_id": f"probe{number:04}"})
    try:
        return template.render(turns, [probe_tool("a tool", PROBE_CALL[0])])
    except InterlockError:
        return None
