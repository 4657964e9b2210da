"""Answers fed to a parser, and the events that are expected of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

from interlock.core.events import (
    ParserEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.errors import InterlockError
from interlock.families.base import (
    Arguments,
    Lit,
    Mark,
    ModelFamily,
    Name,
    ReasoningFormat,
    ToolCallSyntax,
)
from interlock.families.qwen3 import FAMILY as QWEN3
from interlock.families.wire.parse import StreamParser

TOKENS = {1: "<think>", 2: "</think>", 3: "<tool_call>", 4: "</tool_call>", 5: "<|fim_pad|>"}
SPECIAL = re.compile("|".join(map(re.escape, TOKENS.values())))
IDS = {text: token_id for token_id, text in TOKENS.items()}

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'

# A family of other pieces: a bare name and bare arguments between markers, in a section.
SECTIONED = ModelFamily(
    name="sectioned",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<calls>"),),
        call=(
            Mark("<call>"),
            Lit("function"),
            Mark("<sep>"),
            Name(),
            Lit("\n```json\n"),
            Arguments(),
            Lit("\n```"),
            Mark("</call>"),
        ),
        section_close=(Mark("</calls>"),),
        separator="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>", closed_by_tool_call=True),
)


def parser(family: ModelFamily = QWEN3, **options: Any) -> StreamParser:
    ids = (f"call_{number}" for number in itertools.count())
    known = {"special_tokens": None, "thinking": "optional", "tools": "parse", "new_id": lambda: next(ids)}
    return StreamParser(family, **{**known, **options})


def joined(events: Iterable[ParserEvent]) -> list[ParserEvent | str]:
    """Neighbouring deltas as one."""
    out: list[Any] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta | ReasoningDelta) and type(last) is type(event):
            out[-1] = type(event)(text=last.text + event.text)
        elif isinstance(event, ToolCallArguments) and isinstance(last, ToolCallArguments):
            out[-1] = ToolCallArguments(index=event.index, text=last.text + event.text)
        else:
            out.append(event)
    return out


def read(
    text: str, cuts: Iterable[int] = (), *, truncated: bool = False, tokens: bool = False, **options: Any
) -> list[Any]:
    """Joined events; an error is the last entry. tokens: special spellings arrive as tokens."""
    machine = parser(special_tokens=TOKENS if tokens else None, **options)
    events: list[ParserEvent] = []
    try:
        for piece in pieces(text, cuts):
            if tokens and piece in IDS:
                events += machine.push_token(IDS[piece], piece)
            else:
                events += machine.push_text(piece)
        events += machine.finish(truncated)
    except InterlockError as error:
        return [*joined(events), error.code]
    return joined(events)


def pieces(text: str, cuts: Iterable[int]) -> list[str]:
    """``text`` cut at ``cuts``, and around special spellings if there is none of those inside a piece."""
    edges = sorted({0, *cuts, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(edges)]


def token_edges(text: str) -> list[int]:
    return [edge for match in SPECIAL.finditer(text) for edge in match.span()]


def call(index: int, name: str, arguments: str) -> list[ParserEvent]:
    return [
        ToolCallStart(index=index, id=f"call_{index}", name=name),
        ToolCallArguments(index=index, text=arguments),
        ToolCallEnd(index=index),
    ]


def text(value: str) -> TextDelta:
    return TextDelta(text=value)


def thought(value: str) -> ReasoningDelta:
    return ReasoningDelta(text=value)
