"""Readers of arguments, by syntax. Each gives the arguments on as the text of one JSON object, as it comes."""

from __future__ import annotations

from collections.abc import Callable

from interlock.core.argument_syntax import (
    ArgumentSyntax,
    BareKeyArguments,
    NestedTagArguments,
    PythonArguments,
    TaggedArguments,
)
from interlock.core.schema_types import ToolTypes
from interlock.families.wire.arguments.literals import BareKeyReader, PythonReader
from interlock.families.wire.arguments.nested import NestedTagReader
from interlock.families.wire.arguments.tagged import TaggedReader
from interlock.families.wire.call_parts import CallParts, PieceReader
from interlock.families.wire.json_scan import JsonError, JsonScanner, skip_space


def arguments_reader(
    syntax: ArgumentSyntax, parts: CallParts, encode: Callable[[str], str], types: ToolTypes
) -> PieceReader:
    """A reader for the arguments of the call that ``parts`` knows the name of."""
    match syntax:
        case TaggedArguments():
            return TaggedReader(syntax, parts, encode, types.of(parts.name))
        case BareKeyArguments():
            return BareKeyReader(parts, encode(syntax.quote))
        case NestedTagArguments():
            return NestedTagReader(syntax, parts, encode, types.of(parts.name))
        case PythonArguments():
            return PythonReader(parts)
        case "json":
            return JsonReader(parts)


class JsonReader:
    """JSON is passed on as the model wrote it."""

    def __init__(self, parts: CallParts) -> None:
        self.done = False
        self._parts = parts
        self._scanner = JsonScanner()

    def feed(self, text: str, pos: int) -> int:
        if not self._parts.has_arguments:
            pos = skip_space(text, pos)
            if pos < len(text) and text[pos] != "{":
                raise JsonError(pos)
        end = self._parts.read(self._scanner, text, pos)
        self.done = self._scanner.done
        return end
