"""The model's text to events, as it arrives.

One machine reads everything, a character only once, and any split of the text gives the same events (compared
with neighbouring deltas joined). Its rules:

Markers. A marker that is a token of the vocabulary is recognised by its id; the same characters spelt with
ordinary tokens are text. Other markers are matched as text, which is held back only while it may become one.

Reasoning. The opening marker before any answer begins it, the closing one ends it. Repeated opening markers,
and either marker inside an answer, are dropped. A call's opener inside reasoning is reasoning, unless the
family says that it ends it.

Calls. Inside a call the JSON scanner alone decides what is structure: markers in strings are data. Arguments are
passed on as the model wrote them. A call is announced once its name and the first character of its arguments
are known. Names that no tool has are passed on, except where calls have no marker: there it is an answer.

- What turns out to be no call before it was announced is answer text, opener included.
- After that it is an ``InterlockError`` (``invalid_model_output``), and so is a normal end inside the call.
- A call whose name and arguments are whole is whole: its closing braces and markers may be missing.
- A call that was cut off gets no end; if it was not yet announced, it is announced if its name is known.

White space. What the family writes around reasoning and between calls belongs to the markup. White space between
an answer and a call: one separator is markup, the rest is text. White space after a call is text only if text
follows.

Errors are raised by the next call of ``push_*`` or ``finish``, so no event before them is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal
from uuid import uuid4

from interlock.core.events import (
    ParserEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.schema_types import ToolTypes
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families.base import ModelFamily, Piece, Thinking
from interlock.families.wire.call_reader import CallReader
from interlock.families.wire.json_scan import JsonError, skip_space
from interlock.families.wire.markers import TrailingSpace, may_begin
from interlock.families.wire.marks import TokenAlphabet
from interlock.families.wire.plan import ParsePlan, ToolParsing

__all__ = ["StreamParser", "ToolParsing", "call_id"]


def call_id() -> str:
    """A fresh id in OpenAI's style."""
    return f"call_{uuid4().hex}"


class StreamParser:
    """Reads one answer. Not thread-safe."""

    def __init__(
        self,
        family: ModelFamily,
        *,
        special_tokens: Mapping[int, str] | None,
        thinking: Thinking,
        tools: ToolParsing,
        declared: tuple[Tool, ...] = (),
        new_id: Callable[[], str] | None = None,
    ) -> None:
        """special_tokens: id to spelling; ``None`` matches every marker as text. tools: ``parse`` calls,
        ``hide`` them, or ``ignore`` their markers. declared: the tools, for families whose arguments can
        only be read by their types. new_id: makes the ids of calls that bring none.
        """
        self._special_tokens = special_tokens or {}
        self._alphabet = TokenAlphabet(family, special_tokens)
        self._plan = ParsePlan(family, thinking, tools, self._alphabet.encode)
        self._types = ToolTypes(declared)
        self._hidden = tools == "hide"
        self._ignored = tools == "ignore"
        self._new_id = new_id or (short_id if family.tool_calls.ids == "mistral" else call_id)

        self._events: list[ParserEvent] = []
        self._error: InterlockError | None = None
        self._final = False  # no more text follows
        self._pending = ""  # what can only be read together with what follows
        self._skip = ""  # white space of the markup that may come next
        self._space = TrailingSpace()
        self._answered = False  # an answer or a call was seen
        self._fresh = True  # no answer text since the beginning or the last call
        self._num_calls = 0
        self._ids: set[str] = set()
        self._reader: CallReader | None = None
        self._raw: list[str] = []  # text of a call that is not announced
        self._announced = False
        self._num_closers = 0  # closing markers seen after a call
        self._read: Callable[[str, int], int] = self._read_start
        if thinking == "open":
            self._begin_thought()

    @property
    def in_reasoning(self) -> bool:
        return self._read == self._read_thought

    @property
    def in_call(self) -> bool:
        """Inside a call that is not whole."""
        return self._reader is not None and not self._reader.parts.is_whole

    def push_text(self, text: str) -> list[ParserEvent]:
        """Events of the next text; ``text`` comes from ordinary tokens."""
        self._begin_push()
        if self._pending:
            text, self._pending = self._pending + text, ""
        pos, size = 0, len(text)
        while pos < size and self._error is None:
            pos = self._read(text, pos)
        return self._events

    def push_token(self, token_id: int, spelling: str) -> list[ParserEvent]:
        """Events of a special token. One that is no marker here is text."""
        return self.push_text(self._alphabet.token(self._special_tokens.get(token_id, spelling)))

    def finish(self, truncated: bool) -> list[ParserEvent]:
        """Last events. truncated: the answer was cut off, it did not end by itself."""
        self._begin_push()
        self._flush_pending()
        if self._reader is not None:
            self._finish_call(self._reader, truncated)
        held = self._space.take()
        if self.in_reasoning:
            self._emit_thought(held)
        elif not (self._fresh and self._num_calls):
            self._emit_answer(held)
        if self._error is not None:
            raise self._error
        return self._events

    def _begin_push(self) -> None:
        if self._error is not None:
            raise self._error
        self._events = []

    def _flush_pending(self) -> None:
        text, self._pending = self._pending, ""
        if self._read == self._read_header:
            self._answer_text(self._plan.text_header and self._plan.text_header + text)
        if self._read in (self._read_closers, self._read_header) or not text:
            return  # the beginning of a closing marker of a whole call
        if self._reader is not None:
            self._raw.append(text)
            return
        self._final = True
        self._read = self._read_thought if self.in_reasoning else self._read_answer
        pos = 0
        while pos < len(text) and self._reader is None:
            pos = self._read(text, pos)

    # answer

    def _read_start(self, text: str, pos: int) -> int:
        """Where calls may begin without a marker."""
        if self._skip:
            pos = self._skipped(text, pos)
        bare, start = self._plan.bare, skip_space(text, pos)
        if bare and start < len(text):
            if text.startswith(bare, start):
                self._space.push(text[pos:start])
                self._open_call(self._plan.bare_call, "", known=self._plan.by_name and len(self._types) > 0)
                return start
            if may_begin(bare, text, start):
                self._pending = text[pos:]
                return len(text)
        if bare and start == len(text):
            self._space.push(text[pos:])
            return start
        self._read = self._read_answer
        return pos

    def _read_answer(self, text: str, pos: int) -> int:
        if self._skip:
            pos = self._skipped(text, pos)
        end, mark = self._plan.answer_marks.find(text, pos, final=self._final)
        if end > pos:
            self._answer_text(text[pos:end])
        if mark is None:
            self._pending = text[end:]
            return len(text)
        self._answer_mark(mark)
        return end + len(mark)

    def _answer_text(self, text: str) -> None:
        out = self._space.push(text)
        if self._ignored and (out or self._answered):
            out += self._space.take()
        self._emit_answer(out)

    def _answer_mark(self, mark: str) -> None:
        match self._plan.kinds[mark]:
            case "think" if not self._answered or self._plan.thinks_again:
                self._space.take()
                self._begin_thought()
            case "section":
                self._markup_space()
                self._read = self._read_start if self._fresh else self._read_answer
            case "call":
                self._open_call(self._plan.calls[mark], mark)
            case "answer":
                if self._fresh:
                    self._space.take()
                if mark == self._plan.resume:
                    self._read = self._read_start
            case "header":
                self._read = self._read_header
            case _:
                pass

    def _read_header(self, text: str, pos: int) -> int:
        """The words that begin a message, none of those that the family has."""
        header = self._plan.header(text, pos)
        if header is None:
            self._pending = text[pos:]
            return len(text)
        end, mark = header
        self._read = self._read_answer
        if self._plan.kinds.get(mark, "header") == "header":
            self._answer_text(mark)
        else:
            self._answer_mark(mark)
        return end

    def _open_call(self, pieces: tuple[Piece, ...], mark: str, *, known: bool = False) -> None:
        self._raw = [self._markup_space(), mark]
        self._reader = CallReader(pieces, self._alphabet.encode, self._types, known=known)
        self._read = self._read_call

    def _markup_space(self) -> str:
        """Give out white space before markup, but for what belongs to the markup; that is returned."""
        held = self._space.take()
        text = "" if self._fresh else self._plan.without_lead(held)
        self._emit_answer(text)
        return held[len(text) :]

    def _emit_answer(self, text: str) -> None:
        if text:
            self._answered, self._fresh = True, False
            self._events.append(TextDelta(text=self._alphabet.decode(text)))

    # reasoning

    def _begin_thought(self) -> None:
        self._read = self._read_thought
        self._skip = self._plan.reasoning.after_open

    def _read_thought(self, text: str, pos: int) -> int:
        if self._skip:
            pos = self._skipped(text, pos)
        end, mark = self._plan.thought_marks.find(text, pos, final=self._final)
        if end > pos:
            self._emit_thought(self._space.push(text[pos:end]))
        if mark is None:
            self._pending = text[end:]
            return len(text)
        self._thought_mark(mark)
        return end + len(mark)

    def _thought_mark(self, mark: str) -> None:
        kind = self._plan.kinds[mark]
        if kind == "think":
            self._skip = self._plan.reasoning.after_open
            return
        self._emit_thought(self._space.take().removesuffix(self._plan.reasoning.before_close))
        self._read = self._read_start
        if kind in ("call", "section", "answer"):
            self._answer_mark(mark)
        else:
            self._skip = self._plan.reasoning.after_close

    def _emit_thought(self, text: str) -> None:
        if text:
            self._events.append(ReasoningDelta(text=self._alphabet.decode(text)))

    def _skipped(self, text: str, pos: int) -> int:
        """``pos`` after the white space of the markup that is expected here."""
        while self._skip and pos < len(text):
            if text[pos] != self._skip[0]:
                self._skip = ""
                break
            self._skip = self._skip[1:]
            pos += 1
        return pos

    # calls

    def _read_call(self, text: str, pos: int) -> int:
        reader = self._reader
        assert reader is not None
        try:
            end = reader.feed(text, pos)
        except JsonError as error:
            self._raw.append(text[pos : error.at])
            self._publish(reader)
            self._broken(reader)
            return error.at
        if not self._announced:
            self._raw.append(text[pos:end])
        self._publish(reader)
        if end < len(text) and not reader.is_complete:
            self._pending = text[end:]
            return len(text)
        return end

    def _publish(self, reader: CallReader) -> None:
        parts = reader.parts
        if not self._announced and not self._hidden and parts.name is not None and parts.has_arguments:
            self._announce(reader)
        if self._announced:
            text = parts.take()
            if text:
                text = self._alphabet.decode_json(text)
                self._events.append(ToolCallArguments(index=self._num_calls, text=text))
        if reader.is_complete:
            self._end_call()

    def _announce(self, reader: CallReader) -> None:
        self._announced = True
        self._raw.clear()
        name, own_id = reader.parts.name, reader.parts.id
        assert name is not None
        if not own_id or own_id in self._ids:
            own_id = self._new_id()
        self._ids.add(own_id)
        self._events.append(ToolCallStart(index=self._num_calls, id=own_id, name=name))

    def _end_call(self) -> None:
        if self._announced:
            self._events.append(ToolCallEnd(index=self._num_calls))
        self._num_calls += 1
        self._answered = self._fresh = True
        self._num_closers = 0
        self._leave_call(self._read_closers)

    def _leave_call(self, then: Callable[[str, int], int]) -> None:
        self._reader = None
        self._announced = False
        self._raw = []
        self._read = then

    def _broken(self, reader: CallReader) -> None:
        """The text is no call from here on."""
        if reader.parts.is_whole:
            self._end_call()
        elif self._announced:
            name = reader.parts.name
            self._error = InterlockError(
                "invalid_model_output", f"the model's call of {name!r} is not in the form of its family"
            )
        else:
            text = "".join(self._raw)
            self._leave_call(self._read_answer)
            self._answer_text(text)

    def _finish_call(self, reader: CallReader, truncated: bool) -> None:
        if not truncated:
            self._broken(reader)
        elif not self._hidden and not self._announced and reader.parts.name is not None:
            self._announce(reader)

    def _read_closers(self, text: str, pos: int) -> int:
        """After a call: what closes it, and where calls share one marker the next call or the end of all."""
        start, pos = pos, skip_space(text, pos)
        self._space.push(text[start:pos])
        if pos == len(text):
            return pos
        for expected, step in self._plan.after_call(self._num_closers):
            if text.startswith(expected, pos):
                self._follow(step)
                return pos + len(expected)
            if may_begin(expected, text, pos):
                self._pending = text[pos:]
                return len(text)
        self._read = self._read_start if self._plan.bare else self._read_answer
        return pos

    def _follow(self, step: Literal["closer", "next", "end"]) -> None:
        self._space.take()
        if step == "closer":
            self._num_closers += 1
        elif step == "next":
            self._open_call(self._plan.next_call, "")
        else:
            self._read = self._read_answer


def short_id() -> str:
    """A fresh id in Mistral's style."""
    return uuid4().hex[:9]
