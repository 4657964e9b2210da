"""The parser's alphabet: each special token is one character that no decoded text can contain.

A marker may be a token, ordinary text, or a mix of both. In the alphabet all of them are plain strings, and text
that merely looks like a token is another string. The characters are lone surrogates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from interlock.families.base import ModelFamily

_FIRST, _LAST = 0xD800, 0xDFFF
_TOKEN = re.compile("[\ud800-\udfff]")


class TokenAlphabet:
    """One answer's tokens as characters."""

    def __init__(self, family: ModelFamily, special_tokens: Mapping[int, str] | None) -> None:
        """special_tokens: id to spelling; ``None`` if all arrives as text."""
        spellings = tuple(special_tokens.values()) if special_tokens else ()
        self._chars = dict(_marker_tokens(family, spellings))
        self._split = _splitter(tuple(self._chars))

    def encode(self, marker: str) -> str:
        """A marker of the family as it arrives."""
        return self._split.sub(lambda match: self._chars[match[0]], marker)

    def token(self, spelling: str) -> str:
        """The character of a special token."""
        char = self._chars.get(spelling)
        if char is None:
            if len(self._chars) > _LAST - _FIRST:
                return spelling
            char = self._chars[spelling] = chr(_FIRST + len(self._chars))
        return char

    def decode(self, text: str) -> str:
        """``text`` with tokens spelt out."""
        if text.isascii() or not _TOKEN.search(text):
            return text
        spellings = {char: spelling for spelling, char in self._chars.items()}
        return _TOKEN.sub(lambda match: spellings.get(match[0], "\ufffd"), text)

    def decode_json(self, text: str) -> str:
        """The same inside JSON strings."""
        if text.isascii() or not _TOKEN.search(text):
            return text
        spellings = {char: spelling for spelling, char in self._chars.items()}
        return _TOKEN.sub(
            lambda match: json.dumps(spellings.get(match[0], "\ufffd"), ensure_ascii=False)[1:-1], text
        )


@lru_cache(maxsize=64)
def _marker_tokens(family: ModelFamily, spellings: tuple[str, ...]) -> Mapping[str, str]:
    """The tokens that are in some marker, with their characters."""
    markers = "\n".join(family.markers())
    found = sorted({text for text in spellings if text and text in markers})
    return {text: chr(_FIRST + index) for index, text in enumerate(found)}


@lru_cache(maxsize=64)
def _splitter(spellings: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
