"""How often a method's guesses are right."""

from __future__ import annotations

from dataclasses import dataclass, replace

_FIRST, _NEXT = 0.5, 0.8
_LEARNING = 0.1
_CURIOSITY = 0.02


@dataclass(slots=True)
class Rates:
    """Smoothed shares of tokens that were right. first: of first tokens. following: of those behind a right one."""

    first: float = _FIRST
    following: float = _NEXT

    def observe(self, num_guessed: int, num_right: int) -> None:
        """Of ``num_guessed`` tokens in a row the first ``num_right`` were right."""
        self.first += _LEARNING * ((num_right > 0) - self.first)
        for place in range(1, min(num_guessed, num_right + 1)):
            self.following += _LEARNING * ((place < num_right) - self.following)

    def forget(self) -> None:
        """Go back some way towards what nothing is known about, so that guesses are tried again some day."""
        self.first += _CURIOSITY * (_FIRST - self.first)
        self.following += _CURIOSITY * (_NEXT - self.following)

    def likelihoods(self, num_guessed: int) -> list[float]:
        """How likely it is that a guess is right up to each of its tokens."""
        return [self.first * self.following**place for place in range(num_guessed)]

    def copy(self) -> Rates:
        return replace(self)
