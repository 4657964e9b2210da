"""Streaming output to events: a model's token ids, or its text where nobody has the ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from interlock.core.engine import EngineOutput
from interlock.core.events import Event, Finished, ParserEvent
from interlock.families import registry
from interlock.families.base import Thinking
from interlock.families.wire.parse import StreamParser
from interlock.library.schemas import tool_of
from interlock.serving.answer import Answer
from interlock.serving.output import OutputProcessor


class Parser:
    """Reads the answer to one turn, as the server does: reasoning, text, calls, stop strings.

    Stop generating when ``finished``: a stop string came, or one call where only one was asked for.
    """

    def __init__(self, processor: OutputProcessor) -> None:
        self._processor = processor
        self.answer = Answer()
        self.finish_reason: str | None = None

    @property
    def finished(self) -> bool:
        return self._processor.finished

    def push(self, token_ids: Sequence[int], *, is_accepting: bool | None = None) -> list[Event]:
        """Events of the next tokens, stop ids left out. is_accepting: the constraint may end behind them; only stop
        strings in constrained answers need it."""
        if self.finished:
            return []
        return self._took(
            self._processor.push(
                EngineOutput(request_id="", token_ids=tuple(token_ids), is_accepting=is_accepting)
            )
        )

    def finish(
        self, reason: Literal["stop", "length"] = "stop", *, is_accepting: bool | None = None
    ) -> list[Event]:
        """The last events. reason: the model ended its turn, or was cut off. is_accepting: as in ``push``; an answer
        that ends before its constraint may was cut off."""
        if self.finished:
            return []
        return self._took(
            self._processor.push(EngineOutput(request_id="", finish_reason=reason, is_accepting=is_accepting))
        )

    def _took(self, events: list[Event]) -> list[Event]:
        for event in events:
            self.answer.add(event)
            if isinstance(event, Finished):
                self.finish_reason = event.reason
        return events


class TextParser:
    """Reads a model's text, markers included, without a tokenizer.

    family: see ``interlock formats``. tools: what may be called, see ``tool_of``; some families write arguments that
    can only be read by their types. thinking: how the turn begins, by default as the model likes.
    """

    def __init__(self, family: str, *, tools: Sequence[Any] = (), thinking: Thinking | None = None) -> None:
        declared = registry.by_name(family)
        self._parser = StreamParser(
            declared,
            special_tokens=None,
            thinking=thinking or ("optional" if declared.reasoning else "none"),
            tools="parse",
            declared=tuple(tool_of(tool) for tool in tools),
        )
        self.answer = Answer()

    def push(self, text: str) -> list[ParserEvent]:
        """Events of the next text. Raises ``InterlockError`` where a call is no call."""
        return self._took(self._parser.push_text(text))

    def finish(self, *, truncated: bool = False) -> list[ParserEvent]:
        """The last events. truncated: the text was cut off."""
        return self._took(self._parser.finish(truncated))

    def _took(self, events: list[ParserEvent]) -> list[ParserEvent]:
        for event in events:
            self.answer.add(event)
        return list(events)
