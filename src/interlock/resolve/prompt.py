"""A prompt that is given as it is: text or token ids."""

from __future__ import annotations

from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.resolve.text import require_unicode


def resolve_prompt(prompt: str | tuple[int, ...], tokenizer: Tokenizer) -> tuple[int, ...]:
    """Token ids. Text is encoded with the spellings of special tokens acting, and the model's first token in
    front where it wants one; ids are taken as they are. Raises ``invalid_value``."""
    vocabulary = tokenizer.vocabulary
    if isinstance(prompt, str):
        require_unicode(prompt, code="invalid_value", param="prompt")
        ids = tuple(tokenizer.encode(prompt))
        bos = vocabulary.bos_id
        prompt = ids if bos is None or ids[:1] == (bos,) else (bos, *ids)
    for token_id in prompt:
        if not 0 <= token_id < vocabulary.size:
            raise InterlockError(
                "invalid_value",
                f"the prompt has the token {token_id}, the vocabulary has {vocabulary.size} tokens",
                param="prompt",
            )
    if not prompt:
        raise InterlockError("invalid_value", "the prompt is empty", param="prompt")
    return prompt
