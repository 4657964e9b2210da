"""Prompt lookup: what followed the last time that the text ended like this."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence as Seq

from interlock.constraints.providers.base import MatcherError
from interlock.engine.sequence import Sequence

_MAX_PLACES = 32
_MAX_INDEXES = 512


class NgramProposer:
    """Looks for the last ``longest`` to ``shortest`` tokens of a sequence in its prompt and output, the longest first,
    the latest place first, and guesses what stood behind them. A guess that cannot begin the answer is passed over."""

    name = "ngram"

    def __init__(self, *, shortest: int = 2, longest: int = 4) -> None:
        self._shortest = shortest
        self._longest = longest
        self._indexes: OrderedDict[str, _Index] = OrderedDict()  # the one used last comes last

    def propose(self, sequences: Seq[Sequence], limit: int) -> list[list[int]]:
        return [self._guess(sequence, limit) for sequence in sequences]

    def close(self) -> None:
        self._indexes.clear()

    def _guess(self, sequence: Sequence, limit: int) -> list[int]:
        ids = sequence.token_ids
        ends = self._index(sequence).ends(ids, self._shortest, self._longest)
        if not ends:
            return []
        if sequence.constraint is None:
            return ids[ends[0] : ends[0] + limit]
        probe = sequence.constraint.clone()
        refused: set[int] = set()
        try:
            for end in ends:
                if ids[end] not in refused and probe.accepts(ids[end]):
                    return ids[end : end + limit]
                refused.add(ids[end])
        except MatcherError:
            pass  # the copy failed; a guess harms nobody
        finally:
            probe.close()
        return []

    def _index(self, sequence: Sequence) -> _Index:
        index = self._indexes.get(sequence.request_id)
        if index is None or index.num_tokens > len(sequence.token_ids):
            index = self._indexes[sequence.request_id] = _Index()
            if len(self._indexes) > _MAX_INDEXES:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(sequence.request_id)
        index.extend(sequence.token_ids)
        return index


class _Index:
    """Where each id stands in a list that grows."""

    def __init__(self) -> None:
        self.num_tokens = 0
        self._places: defaultdict[int, list[int]] = defaultdict(list)

    def extend(self, ids: list[int]) -> None:
        """Take in what is new."""
        for place in range(self.num_tokens, len(ids)):
            self._places[ids[place]].append(place)
        self.num_tokens = len(ids)

    def ends(self, ids: list[int], shortest: int, longest: int) -> list[int]:
        """Places behind earlier occurrences of the last tokens, best first."""
        found: list[tuple[int, int]] = []
        for place in self._places[ids[-1]][-2 : -2 - _MAX_PLACES : -1]:
            length = 1
            while length < longest and place >= length and ids[place - length] == ids[-1 - length]:
                length += 1
            if length >= shortest:
                found.append((length, place + 1))
        found.sort(reverse=True)
        return [end for _, end in found]
