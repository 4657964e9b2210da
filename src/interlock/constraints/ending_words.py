"""How texts are spelt in the tokens of a vocabulary, for endings of answers."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from interlock.constraints.schema.guards.marks import is_text
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary

_RUNS = b" .-_=*"
_MAX_FILLERS = 48
_MAX_KNOWN = 4_096


class EndingWords:
    """The tokens of a vocabulary that an ending is made of. special_ids: but for stop ids. fillers: tokens that fill a string that must
    be longer, the longest ones first."""

    def __init__(self, vocabulary: GuardVocabulary) -> None:
        self.vocabulary = vocabulary
        special = sorted(set(vocabulary.special_ids) - vocabulary.stop_ids)
        self.special_ids = np.array([one for one in special if vocabulary.tokens[one]], dtype=np.int64)
        self._longest = max((len(text) for text in vocabulary.ids), default=0)
        self.fillers = self._find_fillers()

    def spelt(self, text: bytes) -> tuple[int, ...] | None:
        """``text`` in the fewest tokens; ``None`` where it cannot be spelt."""
        ids, size = self.vocabulary.ids, len(text)
        cost, step = [0] * (size + 1), [b""] * (size + 1)
        for at in range(size - 1, -1, -1):
            cost[at] = size + 1
            for end in range(min(size, at + self._longest), at, -1):
                if cost[end] < cost[at] and text[at:end] in ids:
                    cost[at], step[at] = cost[end] + 1, text[at:end]
                    if cost[end] + 1 == cost[at] and end == size:
                        break
        if cost[0] > size:
            return None
        found, at = [], 0
        while at < size:
            found.append(ids[step[at]])
            at += len(step[at])
        return tuple(found)

    @lru_cache(_MAX_KNOWN)  # noqa: B019 - a search lives as long as its vocabulary
    def key(self, name: str) -> tuple[int, ...] | None:
        """The rest of a key of JSON whose quote is written, and the colon."""
        return self.spelt(json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass")[1:] + b":")

    def _find_fillers(self) -> NDArray[np.int64]:
        """Tokens that fill a string that must be longer, the longest ones first."""
        runs, words = [], []
        for text, token_id in self.vocabulary.ids.items():
            if not is_text(text) or token_id in self.vocabulary.special_ids:
                continue
            if len(set(text)) == 1 and text[0] in _RUNS:
                runs.append((-len(text), _RUNS.index(text[0]), token_id))
            elif text.isalpha() and text.isascii():
                words.append((-len(text), 0, token_id))
        best = [*sorted(runs)[:_MAX_FILLERS], *sorted(words)[:_MAX_FILLERS]]
        return np.array([token_id for _, _, token_id in best], dtype=np.int64)
