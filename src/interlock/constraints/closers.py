"""Texts that end free text in a spec: how a value or a call may be closed where any text goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.constraints.walk import walk
from interlock.core.argument_syntax import TaggedArguments
from interlock.core.constraint import Grammar, JsonValue, Marker, Node, Text

_MAX_CLOSERS = 64
_MAX_CHARS = 128
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)+)"')


def closers(root: Node) -> tuple[str, ...]:
    """In order of the spec, no duplicates, bounded in number and length."""
    found: dict[str, None] = {}
    for node in walk(root):
        for text in _of_node(node):
            if len(found) == _MAX_CLOSERS:
                return tuple(found)
            if 0 < len(text) <= _MAX_CHARS:
                found[text] = None
    return tuple(found)


def _of_node(node: Node) -> Iterator[str]:
    match node:
        case Text(text=text) | Marker(text=text):
            yield text
        case JsonValue(syntax=TaggedArguments(value_close=text)):
            yield text
        case Grammar(source=source):
            yield from _QUOTED.findall(source)
