"""Events of a generation to ``text_completion`` events, in the order they come, and then ``[DONE]``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from interlock import log
from interlock.api.answer import remarks, report, trace_object
from interlock.api.context import Generation
from interlock.api.errors import error_body, internal_error
from interlock.api.openai.completions.request import CompletionsCall
from interlock.api.openai.completions.response import (
    Decode,
    choice_object,
    echo,
    logprobs_object,
    sum_usage,
)
from interlock.api.openai.head import Head
from interlock.api.sse import DONE, encode
from interlock.core.events import (
    Event,
    Failed,
    Finished,
    PromptLogprobs,
    ScoredToken,
    TextDelta,
    TokenLogprobs,
    TokenTraced,
)
from interlock.core.usage import Usage

_LOG = log.get(__name__)


async def stream_chunks(
    events: AsyncIterator[tuple[int, Event]],
    *,
    generation: Generation,
    head: Head,
    call: CompletionsCall,
    decode: Decode,
) -> AsyncGenerator[bytes, None]:
    """Encoded server-sent events."""
    extra = {"usage": None} if call.include_usage else {}
    choices = [_Choice(index, head, extra) for index in range(len(call.requests))]
    usages: dict[int, Usage] = {}
    try:
        for index, choice in enumerate(choices):
            echoed = echo(call, index, decode)
            if echoed and not call.logprobs:  # else it comes with its scores
                yield encode(choice.chunk(echoed))
        async for index, event in events:
            match event:
                case Failed(error=error):
                    yield encode(error_body(error))
                case Finished(reason=reason, usage=usage):
                    usages[index] = usage
                    told = report(generation, [], event.validity, event.timings)
                    yield encode({**choices[index].chunk("", reason), **told})
                case TokenTraced():
                    yield encode(choices[index].traced(event))
                case PromptLogprobs(tokens=tokens):
                    choices[index].tokens.extend(tokens)
                    yield encode(choices[index].chunk(echo(call, index, decode)))
                case TokenLogprobs(tokens=tokens):
                    choices[index].tokens.extend(tokens)
                case TextDelta(text=text):
                    yield encode(choices[index].chunk(text))
        if call.include_usage and len(usages) == len(choices):
            usage_sum = sum_usage([usages[index] for index in range(len(choices))], call.n)
            yield encode(head.object("text_completion", choices=[], usage=usage_sum))
    except Exception:  # noqa: BLE001  the process edge: a stream that began must end with a reason
        _LOG.exception("completion %s could not be written", head.id)
        yield encode(error_body(internal_error()))
    yield DONE


class _Choice:
    """Makes the chunks of one answer. tokens: scored ones of the text that comes next."""

    def __init__(self, index: int, head: Head, extra: dict[str, Any]) -> None:
        self.tokens: list[ScoredToken] = []
        self._index = index
        self._head = head
        self._extra = extra
        self._offset = 0

    def traced(self, event: TokenTraced) -> dict[str, Any]:
        choice = choice_object(self._index, "", None, None)
        told = remarks([], None, trace=[trace_object(event)])
        return self._head.object("text_completion", choices=[choice], **self._extra, **told)

    def chunk(self, text: str, reason: str | None = None) -> dict[str, Any]:
        tokens, self.tokens = self.tokens, []
        logprobs = logprobs_object(tokens, self._offset) if tokens else None
        self._offset += len(text)
        choice = choice_object(self._index, text, logprobs, reason)
        return self._head.object("text_completion", choices=[choice], **self._extra)
