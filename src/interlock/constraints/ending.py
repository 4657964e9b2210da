"""A short legal way to the end of a grammar from where a matcher stands.

No grammar engine tells how far its end is, so the way is searched on a copy: what is forced is taken, then what closes is
tried before what opens, and what leads to a new mask before what leads to a known one. The way is spelt anew in the fewest tokens
and then verified. It is short rather than shortest. Its bounds are counts: no clock decides
what is found.
"""

from __future__ import annotations

import re
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from interlock.constraints import bitmask
from interlock.constraints.ending_hints import EndingHints
from interlock.constraints.ending_words import EndingWords
from interlock.constraints.providers.base import Matcher, MatcherError
from interlock.constraints.schema.guards.effort import effort

MAX_LOOKS = 300
"""Masks computed in one search: some 10 to 25 ms."""

_SPARE_SPELLING, _SPARE_TOKENS = 2, 16
"""A way is given up with so many times, and so many more, tokens than may be: spelt anew it has fewer."""
MAX_FOLLOWED = 20_000
"""Tokens that guards follow in one search, some 0.2 s: six times what any search on MaskBench's schemas that found an ending took."""
MAX_CPU_S = 5.0
"""For what no count bounds. Nothing known comes here."""
_MAX_BYTES = 4_096
_FREE = 64  # so many bytes may follow: it is free text
_CLOSING = b"}])\"',"
_LATE = b" \t\n\r-+.eE{[(\\/"
_NUMERIC = frozenset(b"0123456789.")
_ZERO = ord("0")
_ASCII = 128
_FREE_ENDS = b"\"'`\n<]})>"
_MAX_KEYS = 4
_KEY_END = re.compile(rb"[^:=>,}\]]{0,4}[:=>]")


Missing = Literal["too long", "not found"]


@dataclass(frozen=True, slots=True)
class Ending:
    """token_ids: they lead to where the grammar may end. text: their bytes, special tokens as ``marks.special_text``
    spells them."""

    token_ids: tuple[int, ...]
    text: bytes


class EndingSearch(EndingWords):
    """Searches over one vocabulary. Thread-safe once built."""

    def find(self, matcher: Matcher, hints: EndingHints, most: int = _MAX_BYTES) -> Ending | None:
        """``None`` where none is found within bounds, or none that has a chance to be spelt in ``most`` tokens. ``matcher`` is
        unchanged. Raises ``MatcherError`` only where it had failed before."""
        found = self.find_or_why(matcher, hints, most)
        return found if isinstance(found, Ending) else None

    def find_or_why(self, matcher: Matcher, hints: EndingHints, most: int) -> Ending | Missing:
        """``find``, and why there is none: the one that was begun is too long to be spelt in ``most`` tokens, or there is
        none within the other bounds."""
        walk = _Walk(self, matcher, hints, _SPARE_SPELLING * most + _SPARE_TOKENS)
        try:
            found = walk.run()
        except MatcherError:
            return "not found"
        finally:
            walk.close()
        if found is None:
            return "too long" if walk.is_too_long else "not found"
        return self._verified(matcher, found) or "not found"

    def _verified(self, matcher: Matcher, taken: Sequence[int]) -> Ending | None:
        text = b"".join(map(self.vocabulary.text, taken))
        short = self.spelt(text)
        for ids in (tuple(taken),) if short is None else (short, tuple(taken)):
            if ends_with(matcher, ids):
                return Ending(ids, text)
        return None


def ends_with(matcher: Matcher, token_ids: Sequence[int]) -> bool:
    """Whether ``matcher`` takes ``token_ids`` and may end behind them."""
    probe = matcher.clone()
    try:
        if probe.validate(token_ids) < len(token_ids):
            return False
        for token_id in token_ids:
            probe.accept(token_id)
        return probe.is_accepting
    except MatcherError:
        return False
    finally:
        probe.close()


@dataclass(slots=True)
class _Fork:
    """A place with several ways on. num_taken: tokens before it."""

    num_taken: int
    left: list[list[int]] = field(default_factory=list)


class _DeadEndError(Exception):
    """No way on from here."""


class _Walk:
    """One search: a walk on a copy of a matcher that turns back at dead ends."""

    def __init__(self, search: EndingWords, matcher: Matcher, hints: EndingHints, most: int) -> None:
        self._search = search
        self._vocabulary = search.vocabulary
        self._start = matcher
        self._hints = hints
        self._probe = matcher.clone()
        self._row = np.zeros(search.vocabulary.num_words, dtype=np.int32)
        self._taken: list[int] = []
        self._forks: list[_Fork] = []
        self._seen: set[int] = set()
        self._keys: Counter[tuple[int, ...]] = Counter()
        self._last_mask: int | None = None
        self._most = most
        self._num_looks = 0
        self._num_bytes = 0

    def run(self) -> list[int] | None:
        """The tokens to the end; ``None`` where none is found within bounds."""
        started, followed = time.thread_time(), effort.num_followed
        while (
            self._num_looks < MAX_LOOKS
            and self._num_bytes < _MAX_BYTES
            and not self.is_too_long
            and effort.num_followed - followed < MAX_FOLLOWED
            and time.thread_time() - started < MAX_CPU_S
        ):
            try:
                if self._probe.is_accepting:
                    return self._taken
                self._advance()
            except (MatcherError, _DeadEndError):
                if not self._turned_back():
                    return None
        return None

    @property
    def is_too_long(self) -> bool:
        """More tokens were taken than an ending may have."""
        return len(self._taken) > self._most

    def close(self) -> None:
        """Free the copy."""
        self._probe.close()

    def _advance(self) -> None:
        forced = self._probe.forced_tokens()
        if forced:
            if not self._hints.never.isdisjoint(forced):
                raise _DeadEndError
            self._take(forced)
            return
        mask = self._look()
        self._seen.add(mask)
        steps = self._allowed(self._vocabulary.step_ids)
        if len(steps) >= _FREE:
            out = [] if mask == self._last_mask else self._out_of_free_text(mask)
            ways = out or self._filling(steps)
            self._last_mask = None if out else mask
        else:
            ways = self._through(steps, mask)
            self._last_mask = mask
        if not ways:
            raise _DeadEndError
        first, *rest = ways
        if rest:
            self._forks.append(_Fork(len(self._taken), rest))
        self._take(first)

    def _turned_back(self) -> bool:
        """To the last place with another way on, and a step on that."""
        while self._forks:
            fork = self._forks[-1]
            way = fork.left.pop(0)
            if not fork.left:
                self._forks.pop()
            if self._probe.error is None:
                self._probe.rollback(len(self._taken) - fork.num_taken)
            else:
                self._probe.close()
                self._probe = self._start.clone()
                for token_id in self._taken[: fork.num_taken]:
                    self._probe.accept(token_id)
            del self._taken[fork.num_taken :]
            self._last_mask = None
            try:
                self._take(way)
            except MatcherError:
                continue
            return True
        return False

    def _take(self, token_ids: Sequence[int]) -> None:
        for token_id in token_ids:
            self._probe.accept(token_id)
            self._taken.append(token_id)
            self._num_bytes += len(self._vocabulary.text(token_id))

    def _look(self) -> int:
        self._num_looks += 1
        self._probe.fill(self._row)
        return zlib.crc32(self._row.data)

    def _allowed(self, ids: NDArray[np.int64]) -> list[int]:
        found: list[int] = bitmask.those_allowed(self._row, ids).tolist()
        return found

    def _specials(self) -> list[int]:
        never = self._hints.never
        return [one for one in self._allowed(self._search.special_ids) if one not in never]

    # ---- in free text

    def _out_of_free_text(self, mask: int) -> list[list[int]]:
        """The ways that lead out of it."""
        found = self._required_keys(mask)
        specials = [[one] for one in self._specials()]
        texts = [spelt for text in self._hints.closers if (spelt := self._search.spelt(text.encode()))]
        ends = [
            [self._vocabulary.ids[bytes((byte,))]]
            for byte in _FREE_ENDS
            if bytes((byte,)) in self._vocabulary.ids
        ]
        for way in (*ends[:2], *specials, *map(list, texts), *ends[2:]):
            if self._leads_out(way, mask):
                found.append(way)
                break
        return found

    def _required_keys(self, mask: int) -> list[list[int]]:
        """Where it is a key of JSON: only a declared order keeps others from coming without end. Those least that were
        taken most."""
        keys = [spelt for text in self._hints.required if (spelt := self._search.key(text))]
        legal = [way for way in keys if self._probe.validate(way) == len(way)]
        legal = sorted(legal, key=self._keys.__getitem__)[:_MAX_KEYS]
        found = [list(way) for way in legal if self._leads_out(list(way), mask)]
        self._keys.update(map(tuple, found[:1]))
        return found

    def _leads_out(self, way: list[int], mask: int) -> bool:
        probe = self._probe
        if probe.validate(way) < len(way):
            return False
        twin = probe.clone()
        try:
            for token_id in way:
                twin.accept(token_id)
            if twin.is_accepting or twin.forced_tokens():
                return True
            self._num_looks += 1
            twin.fill(self._row)
            return zlib.crc32(self._row.data) != mask and len(self._allowed(self._vocabulary.step_ids)) < _FREE
        except MatcherError:
            return False
        finally:
            twin.close()

    def _filling(self, steps: list[int]) -> list[list[int]]:
        """Text that must be longer."""
        self._probe.fill(self._row)
        fillers = self._allowed(self._search.fillers)
        return [[fillers[0]]] if fillers else [[one] for one in self._ordered(steps)[:2]]

    # ---- where few bytes may follow

    def _through(self, steps: list[int], mask: int) -> list[list[int]]:
        """The ways on, the most promising one first."""
        tokens = self._vocabulary.tokens
        ordered = self._ordered(steps)
        closing = [[one] for one in ordered if tokens[one][0] in _CLOSING]
        others = [one for one in ordered if tokens[one][0] not in _CLOSING]
        specials = [[one] for one in self._specials()]
        if closing or specials or mask == self._last_mask:
            return [*closing, *specials, *([one] for one in others[:2])]
        return self._newest(others)

    def _newest(self, others: list[int]) -> list[list[int]]:
        """What leads to a mask that was not there yet, else the first ones. Of several keys the one declared last: in an
        order of declaration everything in front of a required key is optional. Of several words the shortest."""
        fresh: list[tuple[int, int, int]] = []
        known: list[int] = []
        alike: dict[str, list[int]] = {}
        for one in others:
            masks = alike.setdefault(_kind(self._vocabulary.tokens[one][0]), [])
            if len(masks) > 1 and masks[-1] == masks[-2]:
                continue  # digits are like digits, and letters like letters
            try:
                forced, mask = self._behind(one)
            except (MatcherError, _DeadEndError):
                continue
            if not forced and mask is not None:
                masks.append(mask)
            text = b"".join(map(self._vocabulary.text, (one, *forced)))
            rank = self._rank(text)
            if mask is None or rank >= 0 or mask not in self._seen:
                fresh.append((-rank, len(text) if forced else 0, len(fresh)))
                known.insert(len(fresh) - 1, one)
            else:
                known.append(one)
        best = [known[place] for _, _, place in sorted(fresh)]
        return [[one] for one in (*best, *known[len(fresh) :][:2])]

    def _behind(self, token_id: int) -> tuple[list[int], int | None]:
        """What is forced behind a token, and the mask then, ``None`` where the grammar may end."""
        twin = self._probe.clone()
        try:
            twin.accept(token_id)
            forced = twin.forced_tokens()
            if not self._hints.never.isdisjoint(forced):
                raise _DeadEndError
            for one in forced:
                twin.accept(one)
            if twin.is_accepting:
                return forced, None
            self._num_looks += 1
            twin.fill(self._row)
            return forced, zlib.crc32(self._row.data)
        finally:
            twin.close()

    def _rank(self, text: bytes) -> int:
        """Place of the literal that ``text`` begins with if that is a key; -1 for none."""
        for place in range(len(self._hints.literals) - 1, -1, -1):
            literal = self._hints.literals[place].encode()
            if text.startswith(literal) and _KEY_END.match(text, len(literal)):
                return place
        return -1

    def _ordered(self, steps: list[int]) -> list[int]:
        tokens = self._vocabulary.tokens
        last = self._vocabulary.text(self._taken[-1])[-1:] if self._taken else b""
        in_number = bool(last) and last[0] in _NUMERIC

        def key(one: int) -> tuple[int, int]:
            byte = tokens[one][0]
            if byte in _CLOSING:
                return 0, _CLOSING.index(byte)
            if byte in _LATE:
                return 3, _LATE.index(byte)
            return (2 if in_number and byte == _ZERO else 1), byte

        ascii_ = [one for one in steps if tokens[one][0] < _ASCII]
        return sorted(ascii_ or steps, key=key)


def _kind(byte: int) -> str:
    char = chr(byte)
    if char.isalpha():
        return "capital" if char.isupper() else "letter"
    return "digit" if char.isdigit() else char
