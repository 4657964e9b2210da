"""``max_tokens: 0`` with ``echo``: the prompt and its scores, and no answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from interlock.core.events import Event, Finished, TextDelta, TokenLogprobs, TokenTraced

NUM_COMPUTED = 1
"""Tokens that the engine is asked for: it does not end at a prompt, and the pass that scores its end gives one anyway."""


async def prompt_only(events: AsyncIterator[tuple[int, Event]]) -> AsyncIterator[tuple[int, Event]]:
    """Without what was generated; the end says that nothing was."""
    async for index, event in events:
        match event:
            case TextDelta() | TokenLogprobs() | TokenTraced():
                continue
            case Finished(usage=usage):
                yield index, replace(event, reason="length", usage=replace(usage, completion_tokens=0))
            case _:
                yield index, event
