"""The bytes that a token's entry in a vocabulary file stands for.

Vocabulary files spell bytes in one of two ways: GPT-2's alphabet, where each byte is one printable
character, and SentencePiece's, where ``▁`` is a space and ``<0x0A>`` one byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from interlock.errors import InterlockError

SPACE_MARK = "▁"
BYTE_TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")

# GPT-2 keeps printable Latin-1 characters and moves the other bytes to U+0100 and up, in order.
_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_MOVED = tuple(byte for byte in range(256) if byte not in _PRINTABLE)
BYTE_OF_CHARACTER = {chr(byte): byte for byte in _PRINTABLE} | {
    chr(0x100 + index): byte for index, byte in enumerate(_MOVED)
}
_CHARACTER_OF_BYTE = {byte: character for character, byte in BYTE_OF_CHARACTER.items()}

# 0xC0, 0xC1 and 0xF5 to 0xFF occur in no UTF-8 text.
UTF8_BYTES = frozenset(range(256)) - {0xC0, 0xC1, *range(0xF5, 0x100)}


def utf8(text: str) -> bytes:
    """``text`` as UTF-8. Raises ``InterlockError`` for a lone surrogate, which JSON can smuggle in."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InterlockError(
            "invalid_value", f"the text has a lone surrogate at character {error.start}: it is not Unicode text"
        ) from error


def to_byte_level(text: str) -> str:
    """``text`` as a vocabulary file in GPT-2's alphabet spells it."""
    return "".join(_CHARACTER_OF_BYTE[byte] for byte in text.encode())


# The alphabet as Latin-1; a Latin-1 character outside the alphabet becomes one that Latin-1 cannot encode.
_TO_LATIN1 = dict.fromkeys(_MOVED, 0xFFFF) | {
    ord(character): byte for character, byte in BYTE_OF_CHARACTER.items()
}


def byte_level(tokens: Iterable[str]) -> list[bytes]:
    """Bytes of tokens in GPT-2's alphabet; a token with any other character stands for itself."""
    result = []
    for token in tokens:
        try:
            result.append(token.translate(_TO_LATIN1).encode("latin-1"))
        except UnicodeEncodeError:
            result.append(token.encode())
    return result


def sentencepiece(tokens: Iterable[str]) -> list[bytes]:
    """Bytes of SentencePiece tokens."""
    result = []
    for token in tokens:
        byte = _BYTE_TOKEN.fullmatch(token)
        result.append(
            bytes([int(byte[1], 16)]) if byte else token.replace(SPACE_MARK, " ").encode(),
        )
    return result


def decode(tokens: Sequence[bytes], ids: Iterable[int]) -> str:
    """Text of ``ids``; malformed UTF-8 becomes U+FFFD. Raises ``IndexError`` for an id out of range."""
    return b"".join([tokens[token_id] for token_id in ids]).decode("utf-8", "replace")
