"""What is wrong with a request, before anything is done for it."""

from __future__ import annotations

from interlock.core.engine import EngineRequest
from interlock.errors import InterlockError


def check_request(request: EngineRequest, *, context_tokens: int, vocab_size: int) -> None:
    """Raises ``invalid_value`` or ``context_length_exceeded``."""
    num_prompt_tokens = len(request.prompt_ids)
    if num_prompt_tokens == 0 or request.max_tokens < 1:
        raise InterlockError("invalid_value", "a request needs a prompt and room for one token")
    if num_prompt_tokens >= context_tokens:
        raise InterlockError(
            "context_length_exceeded",
            f"the prompt has {num_prompt_tokens} tokens; the context holds {context_tokens} with the output",
        )
    ids = request.prompt_ids + request.resume_ids
    if min(ids) < 0 or max(ids) >= vocab_size:
        raise InterlockError("invalid_value", f"token ids must be in 0..{vocab_size - 1}")
    if len(request.resume_ids) >= min(request.max_tokens, context_tokens - num_prompt_tokens):
        raise InterlockError("invalid_value", "a request that is resumed needs room for one more token")
