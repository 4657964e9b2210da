"""Token ids to text, as they come."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from interlock.core.tokenizer import Vocabulary


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A special token in the output: never part of the text around it."""

    token_id: int
    spelling: str


class Detokenizer:
    """The text of one output, token by token.

    Text of all pieces joined equals the tokens' bytes decoded as a whole with ``errors="replace"``:
    a character split over tokens is held until it is whole or cannot become so.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> tuple[str, SpecialToken | None]:
        """Text that became readable, then the special token if ``token_id`` is one."""
        data = self._bytes(token_id)
        if token_id not in self._vocabulary.special_ids:
            return self._decoder.decode(data), None
        return self.finish(), SpecialToken(token_id, data.decode(errors="replace"))

    def finish(self) -> str:
        """Text of the bytes still held, at the end or before a special token."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text

    @property
    def is_between_characters(self) -> bool:
        """True when no byte is held."""
        return self._decoder.getstate()[0] == b""

    def _bytes(self, token_id: int) -> bytes:
        tokens = self._vocabulary.tokens
        return tokens[token_id] if 0 <= token_id < len(tokens) else b""
