"""Reads arguments in which every key and every item is a tag, to any depth."""

from __future__ import annotations

from collections.abc import Callable

from interlock.core.argument_syntax import NestedTagArguments
from interlock.core.schema_types import SchemaTypes
from interlock.families.wire import json_text
from interlock.families.wire.arguments.raw_value import can_only_be_text, is_text, value_text
from interlock.families.wire.call_parts import CallParts
from interlock.families.wire.json_scan import JsonError
from interlock.families.wire.markers import held_back

_MAX_DEPTH = 200
_MAX_TAG = 4096
_CONTAINERS = frozenset(("object", "array"))


class _Level:
    """An open tag. closer: what ends it as an object or list, ``""`` while that is not known."""

    __slots__ = ("closer", "is_empty", "types")

    def __init__(self, types: SchemaTypes, closer: str = "") -> None:
        self.types = types
        self.closer = closer
        self.is_empty = True


class NestedTagReader:
    """``mark<k>v mark</k>``; done at the first mark that opens no tag of ours and closes none."""

    def __init__(
        self,
        syntax: NestedTagArguments,
        parts: CallParts,
        encode: Callable[[str], str],
        types: SchemaTypes,
    ) -> None:
        self.done = False
        self._parts = parts
        self._mark = encode(syntax.mark)
        self._item = syntax.item
        self._levels = [_Level(types, "}")]
        self._value: list[str] = []
        self._streams = False  # the text of the innermost tag is given on as it comes

    def feed(self, text: str, pos: int) -> int:
        while pos < len(text) and not self.done:
            end = text.find(self._mark, pos)
            stop = end if end >= 0 else held_back(text, pos, self._mark)
            if stop > pos:
                self._text(text[pos:stop], pos)
            if end < 0:
                return stop
            after = self._tag(text, end)
            if after == end:
                return end
            pos = after
        return pos

    def _text(self, text: str, at: int) -> None:
        if self._levels[-1].closer:
            if text.strip():
                raise JsonError(at)
        elif self._streams:
            self._parts.add(json_text.escape(text))
        else:
            self._value.append(text)
            if can_only_be_text(self._value, self._levels[-1].types.kinds):
                self._streams = True
                self._parts.add('"' + json_text.escape("".join(self._value)))

    def _tag(self, text: str, at: int) -> int:
        """The tag at a mark; returns where it ends, or ``at`` if it is not whole or not ours."""
        start = at + len(self._mark)
        end = text.find(">", start)
        if end < 0:
            if len(text) - start > _MAX_TAG:
                raise JsonError(at)
            return at
        name = text[start + 1 : end]
        if text[start] != "<":
            raise JsonError(at)
        if not name.startswith("/"):
            self._open(name, at)
        elif len(self._levels) > 1:
            self._close()
        else:
            self._finish()
            return at
        return end + 1

    def _open(self, name: str, at: int) -> None:
        level = self._levels[-1]
        if not level.closer:
            self._become_container(level, name, at)
        elif not level.is_empty:
            self._parts.add(", ")
        elif len(self._levels) == 1:
            self._parts.add("{")
        level.is_empty = False
        if level.closer == "]":
            types = level.types.item()
        else:
            types = level.types.property(name)
            self._parts.add(json_text.quote(name) + ": ")
        if len(self._levels) > _MAX_DEPTH:
            raise JsonError(at)
        self._levels.append(_Level(types))
        self._value = []
        self._streams = is_text(types.kinds)
        if self._streams:
            self._parts.add('"')

    def _become_container(self, level: _Level, name: str, at: int) -> None:
        if self._streams or "".join(self._value).strip():
            raise JsonError(at)
        is_list = name == self._item and "array" in level.types.kinds
        level.closer = "]" if is_list else "}"
        self._parts.add("[" if is_list else "{")

    def _close(self) -> None:
        level = self._levels.pop()
        if level.closer:
            self._parts.add(level.closer)
        elif self._streams:
            self._parts.add('"')
        else:
            self._parts.add(self._scalar(level.types.kinds))
        self._streams = False

    def _scalar(self, kinds: frozenset[str]) -> str:
        text = "".join(self._value)
        if not text.strip() and "string" not in kinds and kinds & _CONTAINERS:
            return "{}" if "object" in kinds else "[]"
        return value_text(text, kinds)

    def _finish(self) -> None:
        self._parts.add("{}" if self._levels[0].is_empty else "}")
        self.done = True
