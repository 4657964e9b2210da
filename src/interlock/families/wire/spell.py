"""A call as the family writes it: for earlier turns in prompts, and for tests of grammar and parser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.families.base import (
    Arguments,
    CallId,
    Header,
    JsonEnvelope,
    Lit,
    Mark,
    Name,
    Number,
    NumberedName,
    Piece,
    Recipient,
    ToolCallSyntax,
)
from interlock.families.wire import json_text
from interlock.families.wire.arguments.spelling import spell_object

Call = tuple[str, dict[str, Any]]  # name, and arguments as ``json_text.loads`` gives them


def spell_call(
    syntax: ToolCallSyntax,
    name: str,
    arguments: dict[str, Any],
    number: int = 0,
    call_id: str = "",
    form: tuple[Piece, ...] = (),
) -> str:
    """One call. number: its place in the turn. call_id: for families that write ids. form: pieces of another form
    of call that the family has.

    Raises ``InterlockError`` (``invalid_messages``) for arguments that the family cannot write.
    """
    text = spell_arguments(syntax, arguments)
    return "".join(_piece(piece, syntax, name, text, number, call_id) for piece in form or syntax.call)


def spell_calls(syntax: ToolCallSyntax, calls: list[Call], call_ids: Sequence[str] = ()) -> str:
    """All calls of a turn."""
    known = (*call_ids, *("" for _ in calls[len(call_ids) :]))
    body = syntax.separator.join(
        spell_call(syntax, name, arguments, number, known[number])
        for number, (name, arguments) in enumerate(calls)
    )
    return _section(syntax, syntax.section_open) + body + _section(syntax, syntax.section_close)


def spell_arguments(syntax: ToolCallSyntax, arguments: dict[str, Any]) -> str:
    """The arguments in the family's syntax and spacing."""
    return spell_object(syntax.arguments, arguments, syntax.item_separator, syntax.key_separator)


def envelope_head(envelope: JsonEnvelope, syntax: ToolCallSyntax, name: str, number: str = "0") -> str:
    """The envelope up to its arguments; ``}`` ends it after them."""
    members = [(envelope.name_key, json_text.quote(name)), (envelope.arguments_key, "")]
    if envelope.number_key:
        members.insert(0, (envelope.number_key, f'"{number}"'))
    spelt = (f"{json_text.quote(key)}{syntax.key_separator}{value}" for key, value in members)
    return "{" + syntax.item_separator.join(spelt)


def _section(syntax: ToolCallSyntax, pieces: tuple[Piece, ...]) -> str:
    return fixed_text(tuple(piece for piece in pieces if syntax.writes_marks or not isinstance(piece, Mark)))


def fixed_text(pieces: tuple[Piece, ...]) -> str:
    """Text of pieces that hold no call."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Mark | Lit | Header))


def _piece(piece: Piece, syntax: ToolCallSyntax, name: str, arguments: str, number: int, call_id: str) -> str:
    match piece:
        case Mark(text=text) | Lit(text=text) | Header(text=text):
            return text
        case Recipient(before=before, after=after):
            return before + name + after
        case Name():
            return name
        case NumberedName(prefix=prefix, separator=separator):
            return f"{prefix}{name}{separator}{number}"
        case Number(first=first):
            return str(first + number)
        case CallId(size=size):
            return call_id or str(number).rjust(size, "0")
        case Arguments():
            return arguments
        case JsonEnvelope():
            tail = f"{syntax.item_separator}{json_text.quote(piece.id_key)}{syntax.key_separator}"
            tail += json_text.quote(call_id)
            has_id = piece.id_key and call_id
            return envelope_head(piece, syntax, name, str(number)) + arguments + (tail if has_id else "") + "}"
