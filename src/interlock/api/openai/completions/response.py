"""Events of a generation to one ``text_completion`` object."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from interlock.api.answer import remarks, report, whole_validity
from interlock.api.context import Generation
from interlock.api.endpoint import collect_all
from interlock.api.openai.completions.request import CompletionsCall, Prompt
from interlock.api.openai.head import Head, usage_object
from interlock.api.openai.prompt_logprobs import prompt_logprobs_object
from interlock.core.events import Event, ScoredToken
from interlock.core.usage import Usage

Decode = Callable[[Sequence[int]], str]


async def complete(
    events: AsyncIterator[tuple[int, Event]],
    *,
    generation: Generation,
    head: Head,
    call: CompletionsCall,
    decode: Decode,
) -> dict[str, Any]:
    """The whole object. Raises the error of a ``Failed``."""
    answers = await collect_all(events, len(call.requests))
    choices = []
    for index, (answer, finished) in enumerate(answers):
        echoed = echo(call, index, decode)
        scored = [*answer.prompt, *answer.tokens] if call.echo else answer.tokens
        logprobs = logprobs_object(scored, 0) if call.logprobs else None
        choice = choice_object(index, echoed + answer.text, logprobs, finished.reason)
        own = remarks([], finished.validity, finished.timings, answer.trace)
        prompt = {"prompt_logprobs": prompt_logprobs_object(answer.prompt)} if call.prompt_logprobs else {}
        choices.append({**choice, **prompt, **(own if len(answers) > 1 else {})})
    usages = [finished.usage for _, finished in answers]
    return head.object(
        "text_completion",
        choices=choices,
        usage=sum_usage(usages, call.n),
        **report(
            generation,
            [],
            whole_validity(finished.validity for _, finished in answers),
            answers[0][1].timings if len(answers) == 1 else None,
            answers[0][0].trace if len(answers) == 1 else (),
        ),
    )


def choice_object(index: int, text: str, logprobs: Any, reason: str | None) -> dict[str, Any]:
    return {"text": text, "index": index, "logprobs": logprobs, "finish_reason": reason}


def echo(call: CompletionsCall, index: int, decode: Decode) -> str:
    """The prompt's text, where it is asked for."""
    prompt: Prompt | None = call.requests[index].prompt if call.echo else ""
    assert prompt is not None
    return prompt if isinstance(prompt, str) else decode(prompt)


def sum_usage(usages: Sequence[Usage], n: int) -> dict[str, Any]:
    """Of all prompts, each counted once for its ``n`` answers."""
    objects = [usage_object(usages[at : at + n]) for at in range(0, len(usages), n)]
    return {
        "prompt_tokens": sum(usage["prompt_tokens"] for usage in objects),
        "completion_tokens": sum(usage["completion_tokens"] for usage in objects),
        "total_tokens": sum(usage["total_tokens"] for usage in objects),
        "prompt_tokens_details": {
            "cached_tokens": sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in objects)
        },
    }


def logprobs_object(tokens: Iterable[ScoredToken], offset: int) -> dict[str, Any]:
    """Parallel lists; null for the first token of a prompt. offset: characters of text before the first token."""
    out: dict[str, Any] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    for token in tokens:
        text = token.data.decode(errors="replace")
        out["tokens"].append(text)
        out["token_logprobs"].append(token.logprob)
        top = {data.decode(errors="replace"): logprob for _, data, logprob in token.top}
        out["top_logprobs"].append(None if token.logprob is None else top)
        out["text_offset"].append(offset)
        offset += len(text)
    return out
