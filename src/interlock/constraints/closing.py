"""When an answer that is about to be cut off is closed instead.

As long as an ending fits into what is left of the budget, any legal token may come. The first token behind which none would fit is
refused, and the ending known before it takes its place: it is legal, since it was verified there. What has been said decides
alone, token by token, so that drafts, batches and preemption change nothing.
"""

from __future__ import annotations

import copy
from collections import OrderedDict

from interlock.constraints.ending import Ending, EndingHints, EndingSearch, ends_with
from interlock.constraints.providers.base import Matcher, MatcherError

_NEAR = 64
"""With at most so many tokens to spare every token is looked at; before that, each look skips a quarter of them."""

_MUST_KNOW = 64
"""With at most so many tokens left, a token behind which no ending is found is refused where one was known before it."""

_MOST_SKIPPED = 16
_MOST_FAILURES = 1
_MAX_STARTS = 256


class Endings:
    """The searches of one worker. Endings of whole grammars are kept by key."""

    def __init__(self, search: EndingSearch) -> None:
        self.search = search
        self._starts: OrderedDict[tuple[str, frozenset[int]], tuple[int, Ending | None]] = OrderedDict()

    def start(self, key: str, matcher: Matcher, hints: EndingHints, most: int) -> Ending | None:
        """From the start of the grammar with this key, in ``most`` tokens or more."""
        place = key, hints.never
        searched, ending = self._starts.get(place, (0, None))
        if ending is None and searched < most:
            self._starts[place] = most, self.search.find(matcher, hints, most)
            while len(self._starts) > _MAX_STARTS:
                self._starts.popitem(last=False)
        self._starts.move_to_end(place)
        return self._starts[place][1]


class Closing:
    """The closing of one sequence. key: of its grammar. max_tokens: its budget. barriers: tokens behind which nothing is
    closed any more. matcher: of the sequence, at its start."""

    def __init__(
        self,
        endings: Endings,
        key: str,
        matcher: Matcher,
        hints: EndingHints,
        *,
        max_tokens: int,
        barriers: frozenset[int] = frozenset(),
    ) -> None:
        self._search = endings.search
        self._hints = hints
        self._barriers = barriers
        self._num_left = max_tokens
        self._ending: Ending | None = None  # from where the sequence stands
        self._num_to_skip = 0
        self._num_failures = 0
        self._is_off = False
        self._rest: tuple[int, ...] | None = None  # of the ending that has been begun
        self._judge(endings.start(key, matcher, hints, max_tokens))

    @property
    def has_begun(self) -> bool:
        """Nothing but the rest of the ending may follow."""
        return self._rest is not None

    @property
    def is_closed(self) -> bool:
        """The ending is there."""
        return self._rest == ()

    @property
    def next_id(self) -> int | None:
        """The next token of an ending that has been begun."""
        return self._rest[0] if self._rest else None

    @property
    def ending_ids(self) -> tuple[int, ...]:
        """What would close the answer where it stands."""
        return () if self._ending is None else self._ending.token_ids

    def begin(self) -> None:
        """Close the answer: after ``refuses``."""
        assert self._ending is not None
        self._rest = self._ending.token_ids

    def give_up(self) -> None:
        """The answer is cut off where its budget ends."""
        self._is_off, self._ending = True, None

    def replayed(self, matcher: Matcher, token_id: int) -> None:
        """``refuses`` for a token that has been said already."""
        if self.refuses(matcher, token_id):
            self.give_up()

    def refuses(self, matcher: Matcher, token_id: int) -> bool:
        """Whether ``token_id`` would leave no room for an ending, and there is one without it. To be asked once about
        each token before ``matcher``, which is unchanged, takes it; if it is not refused it must be taken."""
        if self._is_off or self.has_begun:
            return False
        if token_id in self._barriers:
            self.give_up()
            return False
        num_left = self._num_left - 1
        if self._num_to_skip > 0:
            self._num_to_skip -= 1
            self._num_left, self._ending = num_left, None
            return False
        following = self._behind(matcher, token_id)
        fits = following is not None and len(following.token_ids) <= num_left
        if not fits and (following is not None or num_left <= _MUST_KNOW):
            if self._ending is None:
                self._ending = self._search.find(matcher, self._hints, self._num_left)
            if self._ending is not None and len(self._ending.token_ids) <= self._num_left:
                return True
        self._num_left = num_left
        self._judge(following)
        return False

    def took(self, token_id: int) -> None:
        """A token was taken."""
        if self._rest:
            self._rest = self._rest[1:] if self._rest[0] == token_id else None

    def took_back(self, num_tokens: int) -> None:
        """The last tokens are gone."""
        self._num_left += num_tokens
        self._ending, self._num_to_skip = None, 0

    def forked(self) -> Closing | None:
        """For a copy that looks ahead: it closes what is being closed, and decides nothing."""
        return None if self._rest is None else copy.copy(self)

    def _behind(self, matcher: Matcher, token_id: int) -> Ending | None:
        """An ending behind one more token: the rest of the one before it, that one itself, or another one."""
        text, before = self._search.vocabulary.text(token_id), self._ending
        if before is not None and before.text.startswith(text):
            rest = before.text[len(text) :]
            ids = self._search.spelt(rest)
            if ids is not None:
                return Ending(ids, rest)
        probe = matcher.clone()
        try:
            probe.accept(token_id)
            if probe.is_accepting:
                return Ending((), b"")
            if before is not None and ends_with(probe, before.token_ids):
                return before
            return self._search.find(probe, self._hints, self._num_left)
        except MatcherError:
            return None
        finally:
            probe.close()

    def _judge(self, ending: Ending | None) -> None:
        """When to look again, given the ending from where the sequence stands."""
        self._ending = ending
        if ending is None:
            self._num_failures += 1
            self._num_to_skip = self._num_left // 2
            if self._num_failures > _MOST_FAILURES:
                self.give_up()
            return
        spare = self._num_left - len(ending.token_ids)
        if spare < 0:  # there is no room for one, unless what comes is shorter than it
            self._num_to_skip = min(-spare, _MOST_SKIPPED)
        else:
            self._num_to_skip = 0 if spare <= _NEAR else spare // 4
