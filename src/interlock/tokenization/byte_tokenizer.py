"""A tokenizer of 256 bytes and a few special tokens: for the fake runner and for tests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from interlock.core.tokenizer import Vocabulary
from interlock.tokenization import token_bytes

DEFAULT_SPECIAL_TOKENS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
)
_NUM_BYTES = 256


class ByteTokenizer:
    """Ids 0 to 255 are bytes; special tokens follow in the order given. Those like ``<|...|>`` are control
    tokens."""

    __slots__ = ("_special", "_special_tokens", "_vocabulary")

    def __init__(self, special_tokens: Sequence[str], stop_tokens: Sequence[str]) -> None:
        self._special_tokens = {token: _NUM_BYTES + index for index, token in enumerate(special_tokens)}
        longest_first = sorted(self._special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(re.escape(token) for token in longest_first) or r"(?!)")
        self._vocabulary = Vocabulary(
            tokens=(
                *(bytes([byte]) for byte in range(_NUM_BYTES)),
                *(token.encode() for token in self._special_tokens),
            ),
            special_ids=frozenset(self._special_tokens.values()),
            control_ids=frozenset(
                token_id for token, token_id in self._special_tokens.items() if re.fullmatch(r"<\|.*\|>", token)
            ),
            stop_ids=tuple(
                sorted(self._special_tokens[token] for token in stop_tokens if token in self._special_tokens)
            ),
        )

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def special_tokens(self) -> dict[str, int]:
        return dict(self._special_tokens)

    def encode_text(self, text: str) -> list[int]:
        return list(token_bytes.utf8(text))

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        end = 0
        for match in self._special.finditer(text):
            ids += token_bytes.utf8(text[end : match.start()])
            ids.append(self._special_tokens[match[0]])
            end = match.end()
        ids += token_bytes.utf8(text[end:])
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return token_bytes.decode(self._vocabulary.tokens, ids)


def byte_tokenizer(
    special_tokens: Sequence[str] = DEFAULT_SPECIAL_TOKENS,
    stop_tokens: Sequence[str] = ("<|im_end|>", "<|endoftext|>"),
) -> ByteTokenizer:
    """Bytes and ``special_tokens``; those of ``stop_tokens`` that are among them end a turn."""
    return ByteTokenizer(special_tokens, stop_tokens)
