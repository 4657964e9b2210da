"""A family's parser fed with a turn, cut in pieces, its markers as tokens where the vocabulary has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from interlock.core.events import (
    ParserEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool
from interlock.families.base import ModelFamily, Thinking
from interlock.families.wire.parse import StreamParser

Calls = list[tuple[str, dict[str, Any]]]


class Feed:
    """A parser fed from text, special spellings as tokens."""

    def __init__(
        self,
        family: ModelFamily,
        tokenizer: Tokenizer,
        declared: tuple[Tool, ...] = (),
        thinking: Thinking = "optional",
    ) -> None:
        self._ids = tokenizer.special_tokens
        spellings = {token_id: text for text, token_id in self._ids.items()}
        self._parser = StreamParser(
            family,
            special_tokens=spellings,
            thinking=thinking if family.reasoning else "none",
            tools="parse",
            declared=declared,
        )
        self.events: list[ParserEvent] = []

    def push(self, pieces: Iterable[str]) -> Feed:
        for piece in pieces:
            if piece in self._ids:
                self.events += self._parser.push_token(self._ids[piece], piece)
            else:
                self.events += self._parser.push_text(piece)
        return self

    def finish(self, *, truncated: bool = False) -> Feed:
        self.events += self._parser.finish(truncated)
        return self

    def calls(self) -> Calls:
        starts = [event for event in self.events if isinstance(event, ToolCallStart)]
        assert [event.index for event in self.events if isinstance(event, ToolCallEnd)] == [*range(len(starts))]
        return [(start.name, json.loads(self.arguments(start.index))) for start in starts]

    def arguments(self, index: int) -> str:
        found = (event for event in self.events if isinstance(event, ToolCallArguments))
        return "".join(event.text for event in found if event.index == index)

    def text(self, kind: type[TextDelta | ReasoningDelta] = TextDelta) -> str:
        return "".join(event.text for event in self.events if isinstance(event, kind))


def pieces(text: str, tokenizer: Tokenizer, size: Callable[[], int]) -> list[str]:
    """``text`` with special tokens on their own, and the rest cut into pieces of ``size()``."""
    special = {token_id: spelling for spelling, token_id in tokenizer.special_tokens.items()}
    runs: list[Any] = [b""]
    for token_id in tokenizer.encode(text):
        if token_id in special:
            runs += [special[token_id], b""]
        else:
            runs[-1] += tokenizer.vocabulary.tokens[token_id]
    out: list[str] = []
    for run in runs:
        if isinstance(run, str):
            out.append(run)
            continue
        rest = run.decode()
        while rest:
            cut = size()
            out.append(rest[:cut])
            rest = rest[cut:]
    return out
