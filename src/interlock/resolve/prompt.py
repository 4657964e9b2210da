"""The prompt of a request, and how many tokens its context leaves for the answer."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.messages import Message
from interlock.core.request import GenerateRequest, ReasoningOptions
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families.wire.render import PromptRenderer, RenderedPrompt

# Variables of a chat template that the request sets elsewhere.
_RESERVED = ("messages", "tools", "add_generation_prompt", "bos_token", "eos_token")


def render_prompt(
    request: GenerateRequest,
    renderer: PromptRenderer,
    *,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    reasoning: ReasoningOptions,
) -> RenderedPrompt:
    """Raises ``invalid_value`` for a template variable that has a field of its own, and what the renderer
    raises for a conversation that the model's template refuses."""
    for name, _ in request.template_kwargs:
        if name in _RESERVED:
            raise InterlockError(
                "invalid_value",
                f"{name} cannot be set as a variable of the chat template",
                param=f"chat_template_kwargs.{name}",
            )
    return renderer.render(tuple(messages), tuple(tools), reasoning, dict(request.template_kwargs))


def resolve_max_tokens(requested: int | None, num_prompt_tokens: int, context_tokens: int) -> int:
    """Most tokens to generate: what was asked, or all that the context leaves.

    Raises ``invalid_value``, and ``context_length_exceeded`` where prompt and answer do not fit together.
    """
    if requested is not None and requested < 1:
        raise InterlockError(
            "invalid_value", f"max_tokens must be at least 1, not {requested}", param="max_tokens"
        )
    room = context_tokens - num_prompt_tokens
    if room < 1:
        raise InterlockError(
            "context_length_exceeded",
            f"the context has {context_tokens} tokens and the prompt alone has {num_prompt_tokens}",
            param="messages",
            hint="shorten the conversation or the tools",
        )
    if requested is not None and requested > room:
        raise InterlockError(
            "context_length_exceeded",
            f"the context has {context_tokens} tokens; the prompt has {num_prompt_tokens} and max_tokens asks"
            f" for {requested} more",
            param="max_tokens",
            hint=f"ask for at most {room}, or shorten the conversation",
        )
    return room if requested is None else requested
