"""Compiled grammars, bounded by bytes; refusals, bounded by number."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict

from interlock.constraints.providers.base import CompiledGrammar, Matcher
from interlock.errors import InterlockError

_MAX_REFUSALS = 1024


class CachedGrammar:
    """A compiled grammar that knows whether a matcher of it is alive."""

    def __init__(self, grammar: CompiledGrammar) -> None:
        self._grammar = grammar
        self._matchers: weakref.WeakSet[Matcher] = weakref.WeakSet()

    @property
    def num_bytes(self) -> int:
        return self._grammar.num_bytes

    @property
    def is_spent(self) -> bool:
        return self._grammar.is_spent

    @property
    def in_use(self) -> bool:
        """Whether a sequence holds a matcher made here."""
        return len(self._matchers) > 0

    def matcher(self) -> Matcher:
        """See ``CompiledGrammar.matcher``."""
        matcher = self._grammar.matcher()
        self._matchers.add(matcher)
        return matcher


class GrammarCache:
    """Least recently used goes first, but nothing that is in use. Thread-safe.

    What is in use may exceed ``max_bytes``; it is dropped when it is free again.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._grammars: OrderedDict[str, CachedGrammar] = OrderedDict()
        self._refusals: OrderedDict[str, InterlockError] = OrderedDict()
        self._num_bytes = 0
        self.num_hits = 0
        self.num_evictions = 0

    @property
    def num_bytes(self) -> int:
        """Estimated bytes of the grammars held."""
        return self._num_bytes

    def get(self, key: str) -> CachedGrammar | InterlockError | None:
        """The grammar, why there is none, or ``None`` if it is not known, or spent."""
        with self._lock:
            found: CachedGrammar | InterlockError | None
            if (found := self._grammars.get(key)) is not None and found.is_spent:
                self._drop(key)
                found = None
            if found is not None:
                self._grammars.move_to_end(key)
            elif (found := self._refusals.get(key)) is not None:
                self._refusals.move_to_end(key)
            self.num_hits += found is not None
            return found

    def put(self, key: str, grammar: CompiledGrammar) -> CachedGrammar:
        """Keep ``grammar``; the one already there wins."""
        with self._lock:
            if key not in self._grammars:
                self._grammars[key] = CachedGrammar(grammar)
                self._num_bytes += grammar.num_bytes
            cached = self._grammars[key]
            self._grammars.move_to_end(key)
            self._evict(keep=key)
            return cached

    def drop(self, key: str) -> None:
        """Hold a grammar no longer; whoever uses it goes on using it. Unknown keys are ignored."""
        with self._lock:
            self._drop(key)

    def put_refusal(self, key: str, error: InterlockError) -> None:
        """Remember that this grammar cannot be compiled."""
        with self._lock:
            self._refusals[key] = error
            if len(self._refusals) > _MAX_REFUSALS:
                self._refusals.popitem(last=False)

    def _drop(self, key: str) -> None:
        grammar = self._grammars.pop(key, None)
        if grammar is not None:
            self._num_bytes -= grammar.num_bytes

    def _evict(self, keep: str) -> None:
        for key in list(self._grammars):
            if self._num_bytes <= self._max_bytes:
                return
            if key != keep and not self._grammars[key].in_use:
                self._num_bytes -= self._grammars.pop(key).num_bytes
                self.num_evictions += 1
