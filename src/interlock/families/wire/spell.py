"""A call as the family writes it: for earlier turns in prompts, and for tests of grammar and parser."""

from __future__ import annotations

from typing import Any

from interlock.families.base import Arguments, JsonEnvelope, Lit, Mark, Name, Piece, ToolCallSyntax
from interlock.families.wire import json_text


def spell_call(syntax: ToolCallSyntax, name: str, arguments: dict[str, Any]) -> str:
    """One call. ``arguments`` as ``json_text.loads`` gives them."""
    text = spell_arguments(syntax, arguments)
    return "".join(_piece(piece, syntax, name, text) for piece in syntax.call)


def spell_calls(syntax: ToolCallSyntax, calls: list[tuple[str, dict[str, Any]]]) -> str:
    """All calls of a turn, (name, arguments) each."""
    body = syntax.separator.join(spell_call(syntax, name, arguments) for name, arguments in calls)
    return fixed_text(syntax.section_open) + body + fixed_text(syntax.section_close)


def spell_arguments(syntax: ToolCallSyntax, arguments: dict[str, Any]) -> str:
    """The arguments in the family's spacing."""
    return json_text.dumps(arguments, item_separator=syntax.item_separator, key_separator=syntax.key_separator)


def envelope_head(envelope: JsonEnvelope, syntax: ToolCallSyntax, name: str) -> str:
    """The envelope up to its arguments; ``}`` ends it after them."""
    return (
        f"{{{json_text.quote(envelope.name_key)}{syntax.key_separator}{json_text.quote(name)}"
        f"{syntax.item_separator}{json_text.quote(envelope.arguments_key)}{syntax.key_separator}"
    )


def fixed_text(pieces: tuple[Piece, ...]) -> str:
    """Text of pieces that hold no call."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Mark | Lit))


def _piece(piece: Piece, syntax: ToolCallSyntax, name: str, arguments: str) -> str:
    match piece:
        case Mark(text=text) | Lit(text=text):
            return text
        case Name():
            return name
        case Arguments():
            return arguments
        case JsonEnvelope():
            return envelope_head(piece, syntax, name) + arguments + "}"
