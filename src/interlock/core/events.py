"""Events: what a generation says to its endpoint, in order.

A stream is any number of deltas, then exactly one ``Finished`` or ``Failed``, and nothing after it.
For each call: one ``ToolCallStart``, any number of ``ToolCallArguments``, one ``ToolCallEnd``; a call
without its end was cut off and must not be presented as whole. Those that a parser makes, one for each token, are
structs: a frozen dataclass takes ten times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from interlock.core.timings import RequestTimings
from interlock.core.trace import TokenTrace
from interlock.core.usage import Usage
from interlock.errors import InterlockError

FinishReason = Literal["stop", "length", "tool_calls", "abort"]


class TextDelta(msgspec.Struct, frozen=True, kw_only=True):
    """Visible answer text; never empty."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, kw_only=True):
    """Thinking text; never empty."""

    text: str


class ToolCallStart(msgspec.Struct, frozen=True, kw_only=True):
    """A call begins; ``index`` counts from 0 in this answer."""

    index: int
    id: str
    name: str


class ToolCallArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The next piece of the call's arguments, as JSON text; never empty."""

    index: int
    text: str


class ToolCallEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The call is complete: the concatenated argument text is one JSON object."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredToken:
    """A token of the answer or of the prompt. data: its bytes. logprob, rank: see ``TokenLogprob``. top: the best
    alternatives, best first, as (id, bytes, logprob)."""

    token_id: int
    data: bytes
    logprob: float | None
    top: tuple[tuple[int, bytes, float], ...] = ()
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprobs:
    """Scores of tokens outside thinking and before the first call, in front of their text; only where asked for."""

    tokens: tuple[ScoredToken, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLogprobs:
    """Scores of all tokens of the prompt, before everything else; only where asked for."""

    tokens: tuple[ScoredToken, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTraced:
    """How the next token came about, in front of what it makes; only where asked for. spellings: the bytes of every
    id in ``trace``."""

    trace: TokenTrace
    spellings: Mapping[int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """What a validator says of an answer to a relaxed schema; ``None`` where it cannot tell. answer: of the text, if
    it is held to a schema and there is one. calls: of the arguments of each call, by index."""

    answer: tuple[bool | None, ...] = ()
    calls: tuple[bool | None, ...] = ()

    @property
    def valid(self) -> bool | None:
        """All of it."""
        found = (*self.answer, *self.calls)
        return False if False in found else None if None in found else True


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Normal end. stop_string: the stop string that ended the answer, if one did. validity: of relaxed schemas.
    timings: only where asked for."""

    reason: FinishReason
    usage: Usage
    stop_string: str | None = None
    validity: Validity | None = None
    timings: RequestTimings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The request ended with an error after it had started."""

    error: InterlockError
    usage: Usage = Usage()


ParserEvent = TextDelta | ReasoningDelta | ToolCallStart | ToolCallArguments | ToolCallEnd
Event = ParserEvent | PromptLogprobs | TokenLogprobs | TokenTraced | Finished | Failed
