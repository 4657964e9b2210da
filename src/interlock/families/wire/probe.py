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
_QUESTION = "interlock question"


@dataclass(frozen=True, slots=True)
class ProbeTurn:
    """text: the prompt after the question. arguments_as_text: the template wants arguments as JSON text."""

    text: str
    arguments_as_text: bool


def probe_turn(template: ChatTemplate) -> ProbeTurn | None:
    """How ``template`` writes the probe call; ``None`` if it refuses it in every shape, or leaves it out."""
    name, arguments = PROBE_CALL
    for as_text in (False, True):
        for content in ("", None):
            known = json_text.dumps(dict(arguments)) if as_text else dict(arguments)
            text = _render(template, name, known, content)
            if text is not None and name in text.partition(_QUESTION)[2]:
                return ProbeTurn(text.partition(_QUESTION)[2], as_text)
    return None


def probe_tool(description: str | None, name: str = "probe") -> dict[str, Any]:
    """A tool as templates see it."""
    described = {} if description is None else {"description": description}
    parameters = {"type": "object", "properties": {"key": {"type": "string", "description": "a key"}}}
    return {"type": "function", "function": {"name": name, **described, "parameters": parameters}}


def _render(template: ChatTemplate, name: str, arguments: Any, content: str | None) -> str | None:
    call = {"id": PROBE_ID, "type": "function", "function": {"name": name, "arguments": arguments}}
    turns: list[Mapping[str, Any]] = [
        {"role": "user", "content": _QUESTION},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "content": "a result", "name": name, "tool_call_id": PROBE_ID},
    ]
    try:
        return template.render(turns, [probe_tool("a tool", name)])
    except InterlockError:
        return None
