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
_IDS = (PROBE_ID, "probe0001")
_NAMED_IDS = (
    f"functions.{PROBE_CALL[0]}:0",
    f"functions.{_SECOND}:1",
)  # Kimi K2's: some templates write no more
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
    for ids in (_IDS, _NAMED_IDS):
        for as_text in (False, True):
            for content in ("", None):
                turn = _probe(template, ids, as_text, content)
                if turn is not None:
                    return turn
    return None


def _probe(
    template: ChatTemplate, ids: tuple[str, str], as_text: bool, content: str | None
) -> ProbeTurn | None:
    known = _arguments(as_text)
    calls = [(ids[0], PROBE_CALL[0], known), (ids[1], _SECOND, known)]
    last = None if ids == _IDS else 2  # a result would show the name in its id, though the call did not
    text = _prompt(template, _turn(calls[:1], content)[:last])
    if text is None or PROBE_CALL[0] not in text.partition(_QUESTION)[2]:
        return None
    two = _prompt(template, _turn(calls, content)[:last])
    return ProbeTurn(text.partition(_QUESTION)[2], as_text, two is None or _SECOND not in two)


def numbers_by_turn(template: ChatTemplate, arguments_as_text: bool) -> bool:
    """Whether ``template`` numbers the calls of each turn from 0, whatever their ids say."""
    name, known = PROBE_CALL[0], _arguments(arguments_as_text)
    first, second = (f"functions.{name}:{number}" for number in range(2))
    text = _prompt(template, [*_turn([(first, name, known)], ""), *_turn([(second, name, known)], "")]) or ""
    return text.count(first) > text.count(second)


def probe_tool(description: str | None, name: str = "probe") -> dict[str, Any]:
    """A tool as templates see it."""
    described = {} if description is None else {"description": description}
    parameters = {"type": "object", "properties": {"key": {"type": "string", "description": "a key"}}}
    return {"type": "function", "function": {"name": name, **described, "parameters": parameters}}


def _arguments(as_text: bool) -> Any:
    known = dict(PROBE_CALL[1])
    return json_text.dumps(known) if as_text else known


def _turn(calls: list[tuple[str, str, Any]], content: str | None) -> list[Mapping[str, Any]]:
    """A question, calls (id, name, arguments) and their results."""
    shown = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return [
        {"role": "user", "content": _QUESTION},
        {"role": "assistant", "content": content, "tool_calls": shown},
        *(
            {"role": "tool", "content": "a result", "name": name, "tool_call_id": call_id}
            for call_id, name, _ in calls
        ),
    ]


def _prompt(template: ChatTemplate, turns: list[Mapping[str, Any]]) -> str | None:
    try:
        return template.render(turns, [probe_tool("a tool", PROBE_CALL[0])])
    except InterlockError:
        return None
