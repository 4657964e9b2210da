"""How many tokens the context leaves for the answer."""

from __future__ import annotations

from interlock.errors import InterlockError


def resolve_max_tokens(
    requested: int | None,
    num_prompt_tokens: int,
    context_tokens: int,
    default: int | None = None,
    *,
    min_tokens: int = 0,
) -> int:
    """Most tokens to generate: what was asked, else ``default`` as far as there is room, else all that the context
    leaves.

    Raises ``invalid_value``, also where ``min_tokens`` is more than that, and ``context_length_exceeded`` where prompt and answer do not fit together.
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
    max_tokens = min(default or room, room) if requested is None else requested
    if min_tokens > max_tokens:
        raise InterlockError(
            "invalid_value",
            f"min_tokens is {min_tokens}, but at most {max_tokens} tokens are generated",
            param="min_tokens",
        )
    return max_tokens
