"""What is known of a call while it is read, and the protocol of what reads its pieces."""

from __future__ import annotations

from typing import Protocol

from interlock.core.schema_types import ToolTypes
from interlock.families.wire.json_scan import JsonError, JsonScanner


class CallParts:
    """What is known of a call so far."""

    __slots__ = ("_arguments", "_tools", "has_arguments", "id", "is_whole", "name")

    def __init__(self, tools: ToolTypes | None = None) -> None:
        """tools: a call must have the name of one."""
        self._tools = tools
        self.id: str | None = None
        self.name: str | None = None
        self.has_arguments = False  # their first character is known
        self.is_whole = False  # name and arguments are complete, whatever follows
        self._arguments: list[str] = []

    def named(self, name: str, end: int) -> None:
        """The name is known, it ended at ``end``. Raises ``JsonError`` if no call has it."""
        if self._tools is not None and name not in self._tools:
            raise JsonError(end)
        self.name = name

    def add(self, text: str) -> None:
        if text:
            self.has_arguments = True
            self._arguments.append(text)

    def read(self, scanner: JsonScanner, text: str, pos: int) -> int:
        """Let ``scanner`` read arguments, and add what it took, also when it then raises ``JsonError``."""
        try:
            end = scanner.feed(text, pos)
        except JsonError as error:
            self.add(text[pos : error.at])
            raise
        self.add(text[pos:end])
        return end

    def take(self) -> str:
        """Arguments text that was not taken yet."""
        if len(self._arguments) == 1:
            return self._arguments.pop()
        text = "".join(self._arguments)
        self._arguments.clear()
        return text


class PieceReader(Protocol):
    """Reads one piece of a call."""

    done: bool

    def feed(self, text: str, pos: int) -> int:
        """Read from ``pos``; returns where reading ended. If that is before the end of ``text`` and the reader
        is not done, it needs more to decide: give it the rest again, longer. Raises ``JsonError``."""
        ...
