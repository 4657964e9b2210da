"""When an answer that is about to be cut off is closed instead.

As long as an ending fits into what is left of the budget, any legal token may come. The first token behind which none would fit is
refused, and the ending known before it takes its place: it is legal, since it was verified there. What has been said decides
alone, token by token, so that drafts, batches and preemption change nothing. Searches run beside the step: a sequence whose next
token depends on one waits for it, and others go on.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from interlock.constraints.ending import Ending, EndingSearch, Missing, ends_with
from interlock.constraints.ending_hints import EndingHints
from interlock.constraints.providers.base import Matcher, MatcherError

_NEAR = 64
"""With at most so many tokens to spare every token is looked at; before that, each look skips a quarter of them."""

_MUST_KNOW = 64
"""With at most so many tokens left, a token behind which no ending is found is refused where one was known before it."""

_SHARE_IF_TOO_LONG = 0.25
"""Where the ending found first is too long by far, only another choice than the search's own makes room for one. What is left then
bounds the second search, which the cores that compute the pass do without."""

_MOST_SKIPPED = 16
_MOST_FAILURES = 1
_MAX_STARTS = 256


T = TypeVar("T")


class Endings:
    """The searches of one worker, on a thread of their own. Endings of whole grammars are kept by key."""

    def __init__(self, search: EndingSearch) -> None:
        self.search = search
        self._starts: OrderedDict[tuple[str, frozenset[int]], tuple[int, Ending | Missing]] = OrderedDict()
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "ending-search")

    def beside(self, work: Callable[[], T]) -> Future[T]:
        """``work`` on the thread of the searches, one after the other."""
        return self._thread.submit(work)

    def close(self) -> None:
        """Begin no more searches."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def is_known(self, key: str, hints: EndingHints, most: int) -> bool:
        """Whether ``start`` has its answer at hand."""
        return self._known(key, hints, most) is not None

    def start(self, key: str, matcher: Matcher, hints: EndingHints, most: int) -> Ending | Missing:
        """From the start of the grammar with this key, in ``most`` tokens or more."""
        known = self._known(key, hints, most)
        if known is None:
            known = most, self.search.find_or_why(matcher, hints, most)
        with self._lock:
            self._starts[key, hints.never] = known
            self._starts.move_to_end((key, hints.never))
            while len(self._starts) > _MAX_STARTS:
                self._starts.popitem(last=False)
        return known[1]

    def _known(self, key: str, hints: EndingHints, most: int) -> tuple[int, Ending | Missing] | None:
        with self._lock:
            known = self._starts.get((key, hints.never))
        return None if known is None or (known[0] < most and not isinstance(known[1], Ending)) else known


@dataclass(frozen=True, slots=True)
class _Outlook:
    """ending: from where the sequence stands, if that is known. following: behind one more token; ``None`` where there is none."""

    ending: Ending | None
    following: Ending | None


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
        self._endings = endings
        self._search = endings.search
        self._hints = hints
        self._barriers = barriers
        self._num_left = max_tokens
        self._ending: Ending | None = None  # from where the sequence stands
        self._num_to_skip = 0
        self._num_failures = 0
        self._is_off = False
        self._rest: tuple[int, ...] | None = None  # of the ending that has been begun
        self._searching: tuple[int, Future[_Outlook]] | None = None  # for the token that is asked about
        found = endings.start(key, matcher, hints, max_tokens)
        if found == "too long":
            self._judge(None, looks_again_at=_SHARE_IF_TOO_LONG)
        else:
            self._judge(found if isinstance(found, Ending) else None)

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

    @property
    def search(self) -> Future[_Outlook] | None:
        """What ``refuses`` waits for."""
        return None if self._searching is None else self._searching[1]

    def begin(self) -> None:
        """Close the answer: after ``refuses``."""
        assert self._ending is not None
        self._rest = self._ending.token_ids

    def give_up(self) -> None:
        """The answer is cut off where its budget ends."""
        self._is_off, self._ending = True, None

    def replayed(self, matcher: Matcher, token_id: int) -> None:
        """``refuses`` for a token that has been said already. Searches here and now."""
        if self.refuses(matcher, token_id, at_once=True):
            self.give_up()

    def refuses(self, matcher: Matcher, token_id: int, *, at_once: bool = False) -> bool | None:
        """Whether ``token_id`` would leave no room for an ending, and there is one without it. To be asked about
        each token before ``matcher``, which is unchanged, takes it; if it is not refused it must be taken. ``None``: that
        is not known yet; ask again, about the same token, when ``search`` is done. at_once: search here and now."""
        if self._is_off or self.has_begun:
            return False
        if token_id in self._barriers:
            self.give_up()
            return False
        if self._num_to_skip > 0:
            self._num_to_skip -= 1
            self._num_left, self._ending = self._num_left - 1, None
            return False
        outlook = self._at_hand(matcher, token_id)
        if outlook is None and at_once:
            outlook = self._looked_up(matcher.clone(), token_id)
        if outlook is None:
            outlook = self._found(matcher, token_id)
        return None if outlook is None else self._is_refused(outlook)

    def took(self, token_id: int) -> None:
        """A token was taken."""
        if self._rest:
            self._rest = self._rest[1:] if self._rest[0] == token_id else None

    def took_back(self, num_tokens: int) -> None:
        """The last tokens are gone."""
        self._num_left += num_tokens
        self._ending, self._num_to_skip, self._searching = None, 0, None

    def forked(self) -> Closing | None:
        """For a copy that looks ahead: it closes what is being closed, and decides nothing."""
        return None if self._rest is None else copy.copy(self)

    def _is_refused(self, outlook: _Outlook) -> bool:
        self._ending, following = outlook.ending, outlook.following
        fits = outlook.ending is not None and len(outlook.ending.token_ids) <= self._num_left
        if fits and self._is_needed(following):
            return True
        self._num_left -= 1
        self._judge(following)
        return False

    def _is_needed(self, following: Ending | None) -> bool:
        """Whether an ending from where the sequence stands would rather be said than a token with ``following`` behind it."""
        num_left = self._num_left - 1
        return num_left <= _MUST_KNOW if following is None else len(following.token_ids) > num_left

    def _at_hand(self, matcher: Matcher, token_id: int) -> _Outlook | None:
        """What can be said without a search, as the ending goes on behind the token."""
        text, ending = self._search.vocabulary.text(token_id), self._ending
        if ending is not None and ending.text.startswith(text):
            rest = ending.text[len(text) :]
            ids = self._search.spelt(rest)
            if ids is not None:
                return _Outlook(ending, Ending(ids, rest))
        probe = matcher.clone()
        try:
            probe.accept(token_id)
            if probe.is_accepting:
                return _Outlook(ending, Ending((), b""))
            if ending is not None and ends_with(probe, ending.token_ids):
                return _Outlook(ending, ending)
        except MatcherError:
            pass  # nothing follows that token
        finally:
            probe.close()
        return None

    def _found(self, matcher: Matcher, token_id: int) -> _Outlook | None:
        """``None`` while the search runs, which this begins."""
        searching = self._searching
        if searching is None or searching[0] != token_id:
            probe = matcher.clone()
            self._searching = token_id, self._endings.beside(lambda: self._looked_up(probe, token_id))
            return None
        if not searching[1].done():
            return None
        self._searching = None
        return searching[1].result()

    def _looked_up(self, matcher: Matcher, token_id: int) -> _Outlook:
        """By searches. ``matcher``: of the sequence, a copy, which is closed."""
        try:
            ending, following = self._ending, self._search_behind(matcher, token_id)
            if ending is None and self._is_needed(following):
                ending = self._search.find(matcher, self._hints, self._num_left)
            return _Outlook(ending, following)
        finally:
            matcher.close()

    def _search_behind(self, matcher: Matcher, token_id: int) -> Ending | None:
        probe = matcher.clone()
        try:
            probe.accept(token_id)
            return self._search.find(probe, self._hints, self._num_left)
        except MatcherError:
            return None
        finally:
            probe.close()

    def _judge(self, ending: Ending | None, looks_again_at: float = 0.5) -> None:
        """When to look again, given the ending from where the sequence stands. looks_again_at: the share of the budget that is left then,
        if there is none."""
        self._ending = ending
        if ending is None:
            self._num_failures += 1
            self._num_to_skip = self._num_left - int(self._num_left * looks_again_at)
            if self._num_failures > _MOST_FAILURES:
                self.give_up()
            return
        spare = self._num_left - len(ending.token_ids)
        if spare < 0:  # there is no room for one, unless what comes is shorter than it
            self._num_to_skip = min(-spare, _MOST_SKIPPED)
        else:
            self._num_to_skip = 0 if spare <= _NEAR else spare // 4
