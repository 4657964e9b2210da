"""Which tokens of a mask may repeat an item, or end one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.constraints import bitmask
from interlock.constraints.bitmask import is_allowed
from interlock.constraints.providers.base import Row
from interlock.constraints.schema.guards.rivals import echoes, respelling
from interlock.constraints.schema.guards.scan import State
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary


class Candidates:
    """Of ``row``, the mask of the grammar. states: where guarded values stand."""

    def __init__(self, row: Row, vocabulary: GuardVocabulary, states: Sequence[State]) -> None:
        self._row = row
        self._vocabulary = vocabulary
        self._notations = {state.notation for state in states}
        self._in_string = all(state.mode in ("string", "key string") for state in states)

    def suspects(self, state: State, ways: Sequence[bytes]) -> Iterator[int]:
        """The tokens that go on as an earlier item does, or may do so in another spelling. ways: ``echoes``."""
        row, vocabulary = self._row, self._vocabulary
        heads = {one for way in ways for one in vocabulary.beginnings(way)}
        yield from (one for one in heads if is_allowed(row, one))
        for way in ways:
            yield from self._beyond(way)
        manner = respelling(state)
        if manner is not None:
            yield from self._allowed(vocabulary.respelt(manner, state.notation))

    def completers(self, state: State) -> Iterator[int]:
        """In a string: the tokens that complete it as an earlier item is, in its plainest spelling."""
        for way in echoes(state):
            yield from self._beyond(way)

    def closers(self) -> set[int]:
        """The tokens that may close a container of JSON."""
        return set(self._allowed(self._vocabulary.closers(in_string=self._in_string)))

    def crossers(self) -> set[int]:
        """The tokens that may end an item and begin the next one."""
        crossers = (self._vocabulary.crossers(one, in_string=self._in_string) for one in self._notations)
        return {one for ids in crossers for one in self._allowed(ids)}

    def following(self, token: bytes) -> set[int]:
        """The bytes behind ``token`` with which other tokens go on, a few of which are looked at."""
        ids, following = self._vocabulary.following(token)
        return set(following[bitmask.are_allowed(self._row, ids)].tolist())

    def _beyond(self, way: bytes) -> list[int]:
        ids = self._vocabulary.beyond(way)
        found: list[int] = bitmask.those_allowed(self._row, ids).tolist()
        return found

    def _allowed(self, tokens: Row) -> list[int]:
        """Of a row of tokens."""
        return bitmask.allowed_ids(self._row & tokens)
