"""An answer put together from its events."""

from __future__ import annotations

from dataclasses import dataclass, field

from interlock.core.events import (
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)


@dataclass(slots=True)
class AnswerCall:
    """arguments: pieces of JSON text. complete: together they are one object."""

    id: str
    name: str
    arguments: list[str] = field(default_factory=list)
    complete: bool = False

    @property
    def arguments_text(self) -> str:
        return "".join(self.arguments)


@dataclass(slots=True)
class Answer:
    """An answer so far."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls_by_index: dict[int, AnswerCall] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self.texts.append(text)
            case ReasoningDelta(text=text):
                self.thoughts.append(text)
            case ToolCallStart(index=index, id=call_id, name=name):
                self.calls_by_index[index] = AnswerCall(call_id, name)
            case ToolCallArguments(index=index, text=text):
                self.calls_by_index[index].arguments.append(text)
            case ToolCallEnd(index=index):
                self.calls_by_index[index].complete = True

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def reasoning(self) -> str:
        return "".join(self.thoughts)

    @property
    def calls(self) -> list[AnswerCall]:
        return [call for _, call in sorted(self.calls_by_index.items())]

    def cut_calls(self) -> list[int]:
        """Indices of calls that began and did not end."""
        return [index for index, call in self.calls_by_index.items() if not call.complete]
