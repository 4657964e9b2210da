"""A document of a grammar: from a random walk, closed by the search for an ending where the walk does not end by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np

from interlock.constraints import bitmask
from interlock.constraints.closers import closers
from interlock.constraints.declared import declared_literals, required_keys
from interlock.constraints.ending import EndingSearch
from interlock.constraints.ending_hints import EndingHints
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.core.constraint import JsonValue

_WALKS = 4
_MAX_SAMPLE = 4_000  # bytes of a walk that must end by itself
_CLOSED_AFTER = (48, 24, 12, 6, 3, 0)  # bytes of walks that are closed by the search
_FREE = 64  # so many bytes may follow: it is free text
_QUOTE, _CLOSERS = ord('"'), b'"]}'
_STUCK = 8
"""Behind so many bytes without a way to close, others than letters and digits are tried: such as the ``@`` of an address."""
_MARKS = b"@:-./"
_READABLE = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")


class Sampler:
    """Walks over a vocabulary in which every byte has a token. ids: token by byte."""

    def __init__(
        self, value: JsonValue, grammar: CompiledGrammar, vocabulary: GuardVocabulary, ids: dict[int, int]
    ) -> None:
        self._grammar = grammar
        self._search = EndingSearch(vocabulary)
        self._hints = EndingHints(closers(value), declared_literals(value), required_keys(value))
        self._ids = ids
        self._bytes = {number: byte for byte, number in ids.items()}
        self._stop_ids = vocabulary.stop_ids
        self._row = np.zeros(vocabulary.num_words, np.int32)

    def sample(self, seed: int, is_valid: Callable[[str], bool]) -> str | None:
        """The first document found that is valid; ``None`` if there is none within bounds."""
        chooser = random.Random(seed)  # noqa: S311  no secret
        return next((text for text in self._texts(chooser) if is_valid(text)), None)

    def _texts(self, chooser: random.Random) -> Iterator[str]:
        for most, is_closed in (*[(_MAX_SAMPLE, False)] * _WALKS, *((most, True) for most in _CLOSED_AFTER)):
            matcher = self._grammar.matcher()
            try:
                text = self._walk(matcher, chooser, most, is_closed=is_closed)
            except MatcherError:
                continue
            finally:
                matcher.close()
            if text is not None:
                yield text.decode()

    def _walk(self, matcher: Matcher, chooser: random.Random, most: int, *, is_closed: bool) -> bytes | None:
        out, closable = bytearray(), 0
        while len(out) < most:
            matcher.fill(self._row)
            allowed = set(bitmask.allowed_ids(self._row))
            if allowed.intersection(self._stop_ids):
                return bytes(out)
            found = sorted(self._bytes[number] for number in allowed if number in self._bytes)
            if not found:
                return None
            ends = [byte for byte in found if byte in ((_QUOTE,) if len(found) >= _FREE else _CLOSERS)]
            closable = len(out) if ends else closable
            out.append(_choose(found, ends, chooser, is_stuck=len(out) - closable > _STUCK))
            matcher.accept(self._ids[out[-1]])
        ending = self._search.find(matcher, self._hints) if is_closed else None
        return None if ending is None else bytes(out) + ending.text


def _choose(found: list[int], ends: list[int], chooser: random.Random, *, is_stuck: bool) -> int:
    readable = [byte for byte in found if byte in _READABLE]
    if ends and (not readable or chooser.random() < 0.3):
        return chooser.choice(ends)
    others = [byte for byte in found if 0x20 <= byte < 0x7F and byte not in _READABLE]
    if is_stuck and others and chooser.random() < 0.3:
        return chooser.choice([byte for byte in others if byte in _MARKS] or others)
    return chooser.choice(readable or others or found)
