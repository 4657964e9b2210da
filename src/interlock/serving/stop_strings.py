"""Stop strings: find the first one in a stream of text and hold back what could become one.

An Aho-Corasick automaton: each character costs amortised constant time whatever the stop strings are.
The first stop string to be complete wins; of several that are complete at the same character, the longest.
So the result does not depend on how the text is cut into pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class StopStrings:
    """One stream's search. ``push`` until ``matched``; the stop string is not part of the released text."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._goto: list[dict[str, int]] = [{}]
        self._depth = [0]
        self._match_length = [0]  # longest stop string that ends in this state, 0 for none
        for stop in stops:
            self._insert(stop)
        self._fail = [0] * len(self._goto)
        self._link()
        self._state = 0
        self._held = ""
        self.match = ""

    @property
    def matched(self) -> bool:
        """A stop string is complete; ``match`` says which."""
        return self.match != ""

    def push(self, text: str) -> str:
        """Take the next piece; return the text that is now certain not to be part of a stop string."""
        if len(self._goto) == 1:
            return text
        self._held += text
        for index in range(len(self._held) - len(text), len(self._held)):
            self._state = self._step(self._state, self._held[index])
            length = self._match_length[self._state]
            if length:
                self.match = self._held[index + 1 - length : index + 1]
                released, self._held = self._held[: index + 1 - length], ""
                return released
        return self._release(len(self._held) - self._depth[self._state])

    def flush(self) -> str:
        """What is held: no stop string can span what comes next (a special token, the end)."""
        self._state = 0
        return self._release(len(self._held))

    @property
    def num_held(self) -> int:
        """Characters held back now."""
        return len(self._held)

    def _release(self, count: int) -> str:
        released, self._held = self._held[:count], self._held[count:]
        return released

    def _step(self, state: int, character: str) -> int:
        while state and character not in self._goto[state]:
            state = self._fail[state]
        return self._goto[state].get(character, 0)

    def _insert(self, stop: str) -> None:
        state = 0
        for character in stop:
            following = self._goto[state].get(character)
            if following is None:
                following = len(self._goto)
                self._goto[state][character] = following
                self._goto.append({})
                self._depth.append(self._depth[state] + 1)
                self._match_length.append(0)
            state = following
        self._match_length[state] = len(stop)

    def _link(self) -> None:
        """Failure links, breadth first: the longest proper suffix of a state that is a state too."""
        queue = deque(self._goto[0].values())
        while queue:
            state = queue.popleft()
            for character, following in self._goto[state].items():
                self._fail[following] = self._step(self._fail[state], character)
                queue.append(following)
            if not self._match_length[state]:
                self._match_length[state] = self._match_length[self._fail[state]]
