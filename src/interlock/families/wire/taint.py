"""Client text in a prompt can never become a control token.

A template mixes its own control tokens with the client's text, and afterwards both are one string. So before
rendering, a *seam* is put inside every spelling of a special token in client text: one private-use character
that occurs nowhere in this request. The template neither sees nor makes such a spelling; after rendering, a
special token's spelling is the template's own, and the seams are taken out of the plain text around it. A
seam also goes where client text ends with the beginning of a spelling, or begins with the end of one, so that
no neighbour can complete it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError

_FIRST, _LAST = 0xE000, 0xF8FF  # the private-use characters of the basic plane
_PRIVATE = re.compile(r"[\ue000-\uf8ff]")
_ESCAPED_PRIVATE = re.compile(r"\\u([eEfF][0-9a-fA-F]{3})")


class SpecialText:
    """The special tokens of a vocabulary, as text. Immutable."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # Some vocabularies add white space and single characters as tokens; those control nothing.
        spellings = [text for text in tokenizer.special_tokens if len(text) > 1 and not text.isspace()]
        pattern = trie_pattern(spellings) or "(?!)"
        self._special = re.compile(pattern)
        self._starts = re.compile(f"(?={pattern})")
        self._heads = frozenset(text[:end] for text in spellings for end in range(1, len(text)))
        self._tails = frozenset(text[start:] for text in spellings for start in range(1, len(text)))
        self._longest = max(map(len, spellings), default=0)

    def taint(self, value: Any, seam: str) -> Any:
        """``value`` (text, or JSON-like data with text in it, keys included) with seams."""
        match value:
            case str():
                return self._taint_text(value, seam)
            case dict():
                return {self.taint(key, seam): self.taint(item, seam) for key, item in value.items()}
            case list() | tuple():
                return [self.taint(item, seam) for item in value]
            case _:
                return value

    def _taint_text(self, text: str, seam: str) -> str:
        if not text:
            return text
        cuts = [match.start() + 1 for match in self._starts.finditer(text)]
        reach = range(1, min(self._longest, len(text) + 1))
        if any(text[-size:] in self._heads for size in reach):
            cuts.append(len(text))
        if any(text[:size] in self._tails for size in reach):
            cuts.insert(0, 0)
        if not cuts:
            return text
        return seam.join(text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True))

    def encode(self, text: str, seam: str) -> list[int]:
        """Ids of a rendered template: special spellings become those tokens, all else is plain text."""
        ids: list[int] = []
        done = 0
        for start, end in self._plain_runs(text):
            if seam in text[start:end]:
                ids += self._tokenizer.encode(text[done:start]) if done < start else []
                ids += self._tokenizer.encode_text(text[start:end].replace(seam, ""))
                done = end
        return ids + self._tokenizer.encode(text[done:]) if done < len(text) else ids

    def _plain_runs(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the text between special tokens begins and ends."""
        start = 0
        for match in self._special.finditer(text):
            yield start, match.start()
            start = match.end()
        yield start, len(text)


def choose_seam(texts: Iterable[str]) -> str:
    """A private-use character that is in none of ``texts``, neither plain nor as a JSON escape.

    Raises ``InterlockError`` (``invalid_messages``) if all 6,400 are taken.
    """
    taken: set[int] = set()
    for text in texts:
        taken.update(map(ord, _PRIVATE.findall(text)))
        taken.update(int(code, 16) for code in _ESCAPED_PRIVATE.findall(text))
    for code in range(_FIRST, _LAST + 1):
        if code not in taken:
            return chr(code)
    raise InterlockError("invalid_messages", "the request uses every private-use character of Unicode")


def trie_pattern(texts: Iterable[str]) -> str:
    """A regular expression for the longest of ``texts``, in time that does not grow with their number."""
    trie: dict[str, Any] = {}
    for text in texts:
        node = trie
        for character in text:
            node = node.setdefault(character, {})
        node[""] = {}
    return _pattern(trie)


def _pattern(trie: dict[str, Any]) -> str:
    options = [_chain(character, node) for character, node in trie.items() if character]
    if not options:
        return ""
    pattern = options[0] if len(options) == 1 and "" not in trie else f"(?:{'|'.join(options)})"
    return pattern + "?" if "" in trie else pattern


def _chain(character: str, node: dict[str, Any]) -> str:
    text = character
    while len(node) == 1 and "" not in node:
        character, node = next(iter(node.items()))
        text += character
    return re.escape(text) + _pattern(node)
