"""Vocabulary and tokenizer as every part of the program sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The tokens of a model.

    tokens: bytes of each id, ``b""`` for an id without text (padding, unused). For a special token
        these are its spelling, e.g. ``b"<|im_end|>"``.
    special_ids: ids that act as a unit and never come from encoding plain text (control tokens and
        all added tokens, whether or not the tokenizer file calls them special).
    control_ids: the subset of ``special_ids`` that is never shown to a reader.
    stop_ids: every id that ends a turn (all EOS/EOT/EOM ids of the model, not just one).
    bos_id: id to put in front of a prompt, if the model wants one and the template does not give it.
    """

    tokens: tuple[bytes, ...]
    special_ids: frozenset[int]
    control_ids: frozenset[int]
    stop_ids: tuple[int, ...]
    bos_id: int | None = None

    @property
    def size(self) -> int:
        """Number of ids. A runner's logits may be wider; ids at or above ``size`` are never legal."""
        return len(self.tokens)


class Tokenizer(Protocol):
    """Text to ids and back. Immutable, safe to share between threads."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def special_tokens(self) -> dict[str, int]:
        """Spelling to id of every id in ``vocabulary.special_ids`` that has one."""
        ...

    def encode_text(self, text: str) -> list[int]:
        """Plain text to ids. A special token's spelling inside ``text`` becomes ordinary tokens."""
        ...

    def encode(self, text: str) -> list[int]:
        """As Hugging Face's tokenizer encodes ``text`` with ``add_special_tokens=False``: spellings of
        special tokens become those tokens."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Ids to text, special tokens by their spelling; malformed UTF-8 becomes U+FFFD."""
        ...
