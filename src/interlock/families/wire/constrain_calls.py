"""Calls as the nodes of a constraint."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.core.constraint import Marker, Node, Regex, Repeat, Text
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
from interlock.families.wire.spell import envelope_head
from interlock.families.wire.trees import alternative, sequence

_NUMBER = Regex("[0-9]{1,4}")
_HOLE = "\0"  # stands where a number will


def all_calls(syntax: ToolCallSyntax, values: Mapping[str, Node], *, parallel: bool) -> list[Node]:
    """All calls of a turn: in the family's own form, and in the others it has. values: tool name to arguments."""
    most = None if parallel and not syntax.single else 1
    forms = [_form(syntax, syntax.call, values, most)]
    others = filter(None, (*syntax.variants, syntax.bare_call))
    return forms + [_repeated(syntax, _any_call(syntax, call, values), most) for call in others]


def _form(
    syntax: ToolCallSyntax, call: tuple[Piece, ...], values: Mapping[str, Node], most: int | None
) -> Node:
    calls = _repeated(syntax, _any_call(syntax, call, values), most)
    whole = sequence(*_fixed(syntax.section_open), calls, *_fixed(syntax.section_close))
    if syntax.bare and not syntax.bare_call and syntax.section_open:
        return alternative(
            [whole, sequence(*_unmarked(syntax.section_open), calls, *_unmarked(syntax.section_close))]
        )
    return whole


def _repeated(syntax: ToolCallSyntax, call: Node, most: int | None) -> Node:
    kind = Marker if "<" in syntax.separator else Text
    separator = kind(syntax.separator) if syntax.separator else None
    return call if most == 1 else Repeat(call, 1, most, separator)


def _any_call(syntax: ToolCallSyntax, call: tuple[Piece, ...], values: Mapping[str, Node]) -> Node:
    return alternative([_call(syntax, call, name, value) for name, value in values.items()])


def _call(syntax: ToolCallSyntax, call: tuple[Piece, ...], name: str, arguments: Node) -> Node:
    return sequence(*(node for piece in call for node in _piece(piece, syntax, name, arguments)))


def _piece(piece: Piece, syntax: ToolCallSyntax, name: str, arguments: Node) -> tuple[Node, ...]:
    match piece:
        case Mark(text=text) | Header(text=text):
            return (Marker(text),) if text else ()
        case Lit(text=text):
            return (Text(text),)
        case Recipient(before=before, after=after):
            return (Marker(before), Text(name), Marker(after))
        case Name():
            return (Text(name),)
        case NumberedName(prefix=prefix, separator=separator):
            return (Text(f"{prefix}{name}{separator}"), _NUMBER)
        case Number():
            return (_NUMBER,)
        case CallId(size=size):
            return (Regex(f"[A-Za-z0-9]{{{size}}}"),)
        case Arguments():
            return (arguments,)
        case JsonEnvelope():
            head, found, rest = envelope_head(piece, syntax, name, _HOLE).partition(_HOLE)
            numbered = (_NUMBER, Text(rest)) if found else ()
            return (Text(head), *numbered, arguments, Text("}"))


def _unmarked(pieces: tuple[Piece, ...]) -> tuple[Node, ...]:
    return _fixed(tuple(piece for piece in pieces if not isinstance(piece, Mark)))


def _fixed(pieces: tuple[Piece, ...]) -> tuple[Node, ...]:
    return tuple(
        Text(piece.text) if isinstance(piece, Lit) else Marker(piece.text)
        for piece in pieces
        if isinstance(piece, Mark | Lit | Header)
    )
