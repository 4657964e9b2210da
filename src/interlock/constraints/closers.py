"""Texts that end free text in a spec: how a value or a call may be closed where any text goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.constraints.walk import distinct_texts
from interlock.core.argument_syntax import TaggedArguments
from interlock.core.constraint import Grammar, JsonValue, Marker, Node, Text

_MAX_CLOSERS = 64
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)+)"')


def closers(root: Node) -> tuple[str, ...]:
    """In order of the spec, no duplicates, bounded in number and length."""
    return distinct_texts(root, _of_node, _MAX_CLOSERS)


def _of_node(node: Node) -> Iterator[str]:
    match node:
        case Text(text=text) | Marker(text=text):
            yield text
        case JsonValue(syntax=TaggedArguments(value_close=text)):
            yield text
        case Grammar(source=source):
            yield from _QUOTED.findall(source)
