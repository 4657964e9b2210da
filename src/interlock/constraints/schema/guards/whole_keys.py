"""Tokens that hold a whole key of JSON: one of punctuation or none, as no token is longer than that between two quotes."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping

from interlock.constraints.schema.guards.notation import JSON
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.guards.scan import Frame, Mode, Scan, ScanError, State

_STRING = re.compile(rb'(?=("(?:[^"\\]|\\.)*"))', re.DOTALL)
_IN_STRING = frozenset(("string", "string escape", "key string", "key escape"))
_NOTHING = GuardPlan((), frozenset())
_MAX_KNOWN = 4_096

Held = Mapping[int, frozenset[str]]


class WholeKeys:
    """Of one vocabulary. names: all strings that a token holds whole."""

    def __init__(self, tokens: Iterable[tuple[int, bytes]]) -> None:
        self._tokens = [(number, token) for number, token in tokens if token.count(b'"') > 1]
        self.names = frozenset(name for _, token in self._tokens for name in _strings(token))
        self._most_closed = max((token.count(b"}") + token.count(b"]") for _, token in self._tokens), default=0)
        self._known: dict[tuple[Mode, tuple[bool, ...]], Held] = {}

    def held(self, state: State) -> Held:
        """By token, the keys that it holds where it comes at ``state``."""
        kinds = tuple(frame.is_array for frame in state.frames[-self._most_closed - 1 :])
        found = self._known.get((state.mode, kinds))
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._known[state.mode, kinds] = dict(self._find(state.mode, kinds))
        return found

    def _find(self, mode: Mode, kinds: tuple[bool, ...]) -> Iterator[tuple[int, frozenset[str]]]:
        frames = tuple(Frame(frozenset(), is_array, checked=False, is_within=False) for is_array in kinds)
        state = State(mode, frames, b'"' if mode in _IN_STRING else b"")
        for number, token in self._tokens:
            scan = _KeyScan(_NOTHING, state, token)
            with contextlib.suppress(ScanError):
                scan.run()
                if scan.names:
                    yield number, frozenset(scan.names)


class _KeyScan(Scan):
    """One that notes the keys that begin in it."""

    def __init__(self, plan: GuardPlan, state: State, data: bytes) -> None:
        super().__init__(plan, state, data)
        assert state.notation == JSON
        self.names: set[str] = set()

    def _name(self, key: str) -> None:
        if self._begin >= self._start:
            self.names.add(key)


def _strings(token: bytes) -> Iterator[str]:
    """What stands between two quotes of it, read as JSON."""
    for quoted in _STRING.findall(token):
        with contextlib.suppress(ValueError):
            yield json.loads(quoted)
