"""What a guard must know of a vocabulary."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from interlock.constraints import bitmask
from interlock.constraints.bitmask import Mask
from interlock.core.tokenizer import Vocabulary

COMPLETER = re.compile(rb'[",\]}]')
"""Bytes that may complete an item or a key."""

_STRING_END = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)
_ENDS_MORE = re.compile(rb'["\]}]|[0-9a-z],')


class GuardVocabulary:
    """A vocabulary, and which of its tokens can complete an item or a key. Built once."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens = vocabulary.tokens
        self.special_ids = vocabulary.special_ids
        self.stop_ids = frozenset(vocabulary.stop_ids)
        self.num_words = bitmask.num_words(vocabulary.size)
        ordinary = [
            (number, token)
            for number, token in enumerate(vocabulary.tokens)
            if number not in self.special_ids and number not in self.stop_ids
        ]
        self.ids = {token: number for number, token in reversed(ordinary)}
        self._longest = max(map(len, self.ids), default=0)
        self.completers = self._row(number for number, token in ordinary if COMPLETER.search(token))
        self._index_string_ends(ordinary)
        self.step_ids = np.array(self._steps(), dtype=np.int64)

    def _steps(self) -> list[int]:
        """Tokens of which one begins any text that can be spelt at all: single bytes, and the longer ones where the
        vocabulary lacks the byte."""
        single = {token for token in self.ids if len(token) == 1}
        return sorted(
            number
            for token, number in self.ids.items()
            if token and (token in single or token[:1] not in single)
        )

    def beginnings(self, text: bytes) -> list[int]:
        """The tokens that ``text`` may begin with."""
        heads = (text[:size] for size in range(1, min(len(text), self._longest) + 1))
        return [self.ids[head] for head in heads if head in self.ids]

    def _index_string_ends(self, ordinary: Iterable[tuple[int, bytes]]) -> None:
        """string_ends: tokens that end a string and do nothing more, by what they add to it. escaped_ends: those that
        add escapes. more_ends: those with something behind the string that may end an item, too."""
        string_ends: defaultdict[bytes, list[int]] = defaultdict(list)
        escaped, more = [], []
        for number, token in ordinary:
            match = _STRING_END.match(token) if b'"' in token else None
            if match is None:
                continue
            if _ENDS_MORE.search(token, match.end()):
                more.append(number)
            elif b"\\" in match.group():
                escaped.append(number)
            else:
                string_ends[match.group()[:-1]].append(number)
        self.string_ends = dict(string_ends)
        self.more_ends, self.escaped_ends = self._row(more), self._row(escaped)

    def _row(self, ids: Iterable[int]) -> Mask:
        row = np.zeros(self.num_words, np.int32)
        bitmask.set_only(row, ids)
        return row
