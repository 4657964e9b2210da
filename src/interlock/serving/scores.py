"""Log probabilities of an answer's tokens, given out together with the text that they make."""

from __future__ import annotations

from collections import deque

from interlock.core.engine import TokenLogprob
from interlock.core.events import Event, ScoredToken, TextDelta, TokenLogprobs
from interlock.core.tokenizer import Vocabulary


class Scores:
    """Tokens wait here while stop strings may still take their text back. Positions are characters."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokens = vocabulary.tokens
        self._waiting: deque[tuple[int, int, ScoredToken]] = deque()

    def add(self, score: TokenLogprob, start: int, end: int) -> None:
        """A token whose text is ``start`` to ``end`` of the answer."""
        self._waiting.append((start, end, self.scored(score)))

    def scored(self, score: TokenLogprob) -> ScoredToken:
        """A score with the bytes of its tokens."""
        return ScoredToken(
            token_id=score.token_id,
            data=self._tokens[score.token_id],
            logprob=score.logprob,
            top=tuple((token_id, self._tokens[token_id], logprob) for token_id, logprob in score.top),
            rank=score.rank,
        )

    def release(self, events: list[Event], passed: int, *, ended: bool) -> None:
        """Put the tokens of text up to ``passed`` in front of the first text in ``events``. ended: the answer
        is over; a token with some text in it counts, what is behind it is dropped."""
        tokens = []
        while self._waiting and (self._waiting[0][1] <= passed or (ended and self._waiting[0][0] < passed)):
            tokens.append(self._waiting.popleft()[2])
        if tokens:
            at = next((i for i, event in enumerate(events) if isinstance(event, TextDelta)), 0)
            events.insert(at, TokenLogprobs(tokens=tuple(tokens)))
