"""Conversations that cannot fit the context, refused before they are rendered and tokenised."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.messages import Message
from interlock.core.tools import Tool
from interlock.errors import InterlockError

# Unicode's composition, which some tokenizers do first, makes one byte of at most this many characters.
_CHARACTERS_OF_A_BYTE = 2


def check_prompt_size(
    messages: Sequence[Message], tools: Sequence[Tool], *, context_tokens: int, longest_token: int
) -> None:
    """Raise ``context_length_exceeded`` where no tokenizer could make it fit: a token has ``longest_token``
    bytes at most, and a message needs one token at least. Replies are not counted, templates may shorten them.
    """
    texts = [message.content or "" for message in messages if message.role != "assistant"]
    texts += [tool.parameters for tool in tools] + [tool.description or "" for tool in tools]
    needed = max(len(messages), sum(map(len, texts)) // (longest_token * _CHARACTERS_OF_A_BYTE))
    if needed > context_tokens:
        raise InterlockError(
            "context_length_exceeded",
            f"the context has {context_tokens} tokens and the prompt alone has at least {needed}",
            param="messages",
            hint="shorten the conversation or the tools",
        )
