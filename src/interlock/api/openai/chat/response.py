"""Events of a generation to one ``chat.completion`` object."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from interlock.api.answer import ScoredAnswer, remarks, report, whole_validity
from interlock.api.context import Generation, ReasoningField
from interlock.api.endpoint import collect_all
from interlock.api.openai.head import Head, token_objects, usage_object
from interlock.api.openai.prompt_logprobs import prompt_logprobs_object
from interlock.core.events import Event


async def complete(
    events: AsyncIterator[tuple[int, Event]],
    *,
    generation: Generation,
    head: Head,
    n: int,
    logprobs: bool,
    reasoning_field: ReasoningField,
) -> dict[str, Any]:
    """The whole object. Raises the error of a ``Failed``. With several answers, calls that were cut off are named
    in the choice that has them."""
    answers = await collect_all(events, n)
    choices = []
    for index, (answer, finished) in enumerate(answers):
        choice = {
            "index": index,
            "message": _message(answer, reasoning_field),
            "logprobs": logprobs_object(answer.tokens) if logprobs else None,
            "finish_reason": finished.reason,
        }
        own = remarks(answer.cut_calls(), finished.validity, finished.timings, answer.trace)
        choices.append({**choice, **own} if n > 1 else choice)
    return head.object(
        "chat.completion",
        choices=choices,
        usage=usage_object(finished.usage for _, finished in answers),
        **_scored_prompt(answers[0][0]),
        **report(
            generation,
            answers[0][0].cut_calls() if n == 1 else [],
            whole_validity(finished.validity for _, finished in answers),
            answers[0][1].timings if n == 1 else None,
            answers[0][0].trace if n == 1 else (),
        ),
    )


def _scored_prompt(answer: ScoredAnswer) -> dict[str, Any]:
    return {"prompt_logprobs": prompt_logprobs_object(answer.prompt)} if answer.prompt else {}


def logprobs_object(tokens: list[Any]) -> dict[str, Any]:
    return {"content": token_objects(tokens), "refusal": None}


def _message(answer: ScoredAnswer, reasoning_field: ReasoningField) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text if answer.text or not answer.calls else None,
        "refusal": None,
    }
    if answer.thoughts:
        message[reasoning_field] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": called.id,
                "type": "function",
                "function": {"name": called.name, "arguments": called.arguments_text},
            }
            for called in answer.calls
        ]
    return message
