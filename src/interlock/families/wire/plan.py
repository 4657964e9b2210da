"""What each marker of a family means in one answer, worked out before the first character arrives."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Literal

from interlock.families.base import Lit, Mark, ModelFamily, Piece, ReasoningFormat, Recipient, Thinking
from interlock.families.wire.call_reader import call_body, call_closers
from interlock.families.wire.markers import MarkerMatcher

ToolParsing = Literal["parse", "hide", "ignore"]
MarkKind = Literal["think", "end_think", "section", "call", "answer", "header"]
AfterCall = Literal["closer", "next", "end"]

# Words between the marks of a header; "=" gives a recipient.
_HEADER = re.compile(r"[^=\n]{0,100}")
_WORD = re.compile(r"\w+")


class ParsePlan:
    """Markers as they arrive (see ``marks.py``), and what they lead to.

    kinds: what each marker means. calls: the pieces after a marker that begins a call. bare, bare_call: the text
    that begins a call without a marker, ``""`` if there is none. by_name: then it needs the name of a tool. next_call: the pieces of a call after a
    separator, where calls have no marker of their own. text_header: what begins a header, if it may also be text. resume: the marker after which an answer begins anew.
    """

    def __init__(
        self, family: ModelFamily, thinking: Thinking, tools: ToolParsing, encode: Callable[[str], str]
    ) -> None:
        self._family = family
        self._encode = encode
        self.reasoning = family.reasoning or ReasoningFormat(open="", close="")
        self.thinks_again = self.reasoning.repeats
        self.resume = encode(self.reasoning.resume)
        self.kinds: dict[str, MarkKind] = {}
        self.calls: dict[str, tuple[Piece, ...]] = {}
        header = family.answer.header_open if family.answer else ""
        self.text_header = "" if "<" in header else header
        self.bare = ""
        self.bare_call: tuple[Piece, ...] = ()
        self.by_name = not family.tool_calls.bare_call
        self.next_call = family.tool_calls.call
        self._after: list[list[tuple[str, AfterCall]]] = [[]]
        if tools != "ignore":
            self._add_calls()
        self._add_answer()
        if family.reasoning is not None and thinking != "none":
            self.kinds[encode(family.reasoning.open)] = "think"
            self.kinds.setdefault(encode(family.reasoning.close), "end_think")
        self.answer_marks = _matcher(frozenset(self.kinds))
        self.thought_marks = _matcher(frozenset(self._thought_marks()))

    def without_lead(self, space: str) -> str:
        """White space between an answer and a call, without what belongs to the call."""
        syntax = self._family.tool_calls
        lead = syntax.lead
        while lead and not space.endswith(lead):
            lead = lead[1:]
        return space.removesuffix(lead)

    def after_call(self, num_closers: int) -> list[tuple[str, AfterCall]]:
        """What may come next, white space left out, after so many closing markers."""
        return self._after[min(num_closers, len(self._after) - 1)]

    def header(self, text: str, pos: int) -> tuple[int, str] | None:
        """Where the words of a header end, its closing mark included, and the mark that it stands for: that of
        thinking, that of an answer, or its own opening if it is text. ``None`` if more is needed."""
        answer = self._family.answer
        assert answer is not None
        start, close = self._encode(answer.header_open), self._encode(answer.header_close)
        words = _HEADER.match(text, pos)
        end = text.find(close, pos, words.end() + len(close) if words else pos)
        if end < 0:
            return None if words and words.end() == len(text) else (pos, start)
        word = _WORD.match(text, pos)
        is_thought = word is not None and self._encode(self.reasoning.open) == start + word[0] + close
        return end + len(close), self._encode(self.reasoning.open if is_thought else answer.open)

    def _add_calls(self) -> None:
        syntax = self._family.tool_calls
        for piece in (*syntax.section_open, *syntax.section_close):
            if isinstance(piece, Mark):
                self.kinds[self._encode(piece.text)] = "section"
        for call in (syntax.call, *syntax.variants):
            opener = next(piece for piece in call if not isinstance(piece, Recipient))
            if isinstance(opener, Mark):
                self._add_opener(opener, call_body(call))
        between = tuple(piece for piece in syntax.section_open if not isinstance(piece, Mark))
        if not syntax.call_opener:
            self.next_call = call_body(syntax.call)
            if syntax.opener:
                self._add_opener(Mark(syntax.opener), between + self.next_call)
        if syntax.bare:
            self.bare, self.bare_call = syntax.bare.strip(), syntax.bare_call or between + self.next_call
        self._after = self._steps_after_calls()

    def _add_opener(self, mark: Mark, body: tuple[Piece, ...]) -> None:
        opener = self._encode(mark.text)
        self.kinds[opener] = "call"
        self.calls[opener] = body

    def _steps_after_calls(self) -> list[list[tuple[str, AfterCall]]]:
        syntax = self._family.tool_calls
        closers = [self._encode(text) for text in call_closers(syntax.call)]
        steps: list[list[tuple[str, AfterCall]]] = [[(closer, "closer")] for closer in closers]
        shared: list[tuple[str, AfterCall]] = []
        if not syntax.call_opener:
            separator = syntax.separator.strip()
            end = next((p for p in syntax.section_close if isinstance(p, Lit | Mark) and p.text.strip()), None)
            shared += [(self._encode(end.text.strip()), "end")] if end is not None else []
            shared += [(separator, "next")] if separator or end is not None else []
        return [*steps, shared]

    def _add_answer(self) -> None:
        answer = self._family.answer
        for text in answer.markers() if answer else ():
            self.kinds[self._encode(text)] = "answer"
        if answer is not None and answer.header_open:
            self.kinds[self._encode(answer.header_open)] = "header"

    def _thought_marks(self) -> list[str]:
        """Markers that mean something inside thinking."""
        kinds: set[MarkKind] = {"think", "end_think"}
        if self.reasoning.closed_by_tool_call:
            kinds |= {"call", "section"}
        marks = [mark for mark, kind in self.kinds.items() if kind in kinds]
        close = self._encode(self.reasoning.close)
        if self._family.answer is not None and "think" in self.kinds.values():
            marks += [self._encode(self._family.answer.open)]
            marks += [close] if self.kinds.get(close) == "answer" else []
        return list(dict.fromkeys(marks))


@cache
def _matcher(marks: frozenset[str]) -> MarkerMatcher:
    return MarkerMatcher(marks)
