"""Earlier turns in the form a family can write: ids of its own, one call a message, no text that it reserves."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from interlock.core.messages import Message, ToolCall
from interlock.errors import InterlockError
from interlock.families.base import ModelFamily, NumberedName, ToolCallSyntax

_NINE = re.compile(r"[A-Za-z0-9]{9}")


def native_ids(
    messages: Sequence[Message], syntax: ToolCallSyntax, *, number_by_turn: bool = False
) -> list[Message]:
    """The conversation with ids of calls as the family forms them; results follow their calls. Numbers in ids count the
    calls of the conversation, or those of their turn."""
    numbered = next((piece for piece in syntax.call if isinstance(piece, NumberedName)), None)
    if numbered is None and syntax.ids == "openai":
        return list(messages)
    known: dict[str, str] = {}
    out = []
    num_before = 0
    for message in messages:
        calls = []
        for number, call in enumerate(message.tool_calls, 0 if number_by_turn else num_before):
            own = _short(call.id)
            if numbered is not None:
                own = f"{numbered.prefix}{call.name}{numbered.separator}{number}"
            known[call.id] = own
            calls.append(replace(call, id=own))
        num_before += len(calls)
        answers = message.tool_call_id
        out.append(replace(message, tool_calls=tuple(calls), tool_call_id=known.get(answers or "", answers)))
    return out


def _short(call_id: str) -> str:
    """Nine letters and digits, the same for the same id."""
    return call_id if _NINE.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:9]


def one_call_a_message(messages: Sequence[Message]) -> list[Message]:
    """Parallel calls as calls one after the other, each followed by its result."""
    out: list[Message] = []
    pending: list[Message] = []  # calls of the last turn that wait for their results
    for message in messages:
        if message.role == "tool":
            call = next((turn for turn in pending if turn.tool_calls[0].id == message.tool_call_id), None)
            if call is not None:
                pending.remove(call)
                out.append(call)
            out.append(message)
            continue
        out += pending
        pending = list(_single_calls(message)) if len(message.tool_calls) > 1 else []
        if not pending:
            out.append(message)
    return out + pending


def _single_calls(message: Message) -> Iterator[Message]:
    first, *others = message.tool_calls
    yield replace(message, tool_calls=(first,))
    for call in others:
        yield Message(role="assistant", tool_calls=(call,))


def check_reserved(messages: Sequence[Message], family: ModelFamily, special_tokens: Sequence[str]) -> None:
    """Raise ``InterlockError`` (``invalid_messages``) for an earlier argument or result that spells markup the
    model could not tell from its own. Markup with a token of its own is safe: client text never becomes one."""
    reserved = [text for text in family.reserved if not any(token in text for token in special_tokens)]
    for index, message in enumerate(messages):
        for where, text in _texts(message):
            found = next((mark for mark in reserved if mark in text), None)
            if found is not None:
                raise InterlockError(
                    "invalid_messages",
                    f"earlier calls and results of this model cannot hold the text {found!r}",
                    param=f"messages[{index}].{where}",
                )


def _texts(message: Message) -> Iterator[tuple[str, str]]:
    for number, call in enumerate(message.tool_calls):
        yield f"tool_calls[{number}].function.arguments", _unescaped(call)
    if message.role == "tool":
        yield "content", message.content or ""


def _unescaped(call: ToolCall) -> str:
    return call.arguments.replace("\\/", "/").replace("\\u003c", "<").replace("\\u003e", ">")
