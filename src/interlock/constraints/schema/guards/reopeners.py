"""Tokens of a vocabulary that go over a comma of JSON and begin more behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from interlock.constraints import bitmask
from interlock.constraints.schema.guards.plan import Room

_STRING = rb'"[^"\\]*"'
_END_OF_STRING = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)
_CLOSER = re.compile(rb"[\]}]")
_COMMA = re.compile(rb'[^",]*(?:"(?:[^"\\]|\\.)*"[^",]*)*,\s*\S')  # it is in no string
_ITEMS = re.compile(rb'([^",]*)((?:,\s*%b\s*)*),\s*("[^"\\]*\\?|[^",\s][^,]*|)' % _STRING)
_ITEM = re.compile(_STRING)


class Reopening(NamedTuple):
    """What a token does. num_closed: the containers that it ends in front of the first comma. passed: strings that it begins
    and ends, each all there is between two commas. begun: what it begins in the end; ``None`` if it does anything else."""

    num_closed: int
    passed: tuple[bytes, ...]
    begun: bytes | None


class Reopeners:
    """Of the tokens that begin somewhere outside of strings, or inside one, which they end first: ``in_string``."""

    def __init__(self, tokens: Iterable[tuple[int, bytes]], vocab_size: int, *, in_string: bool) -> None:
        self._vocab_size = vocab_size
        self._known: dict[int, Reopening] = {}
        for token_id, text in tokens:
            end = _END_OF_STRING.match(text) if in_string else None
            rest = text if end is None else text[end.end() :]
            if (end or not in_string) and _COMMA.match(rest):
                self._known[token_id] = _reopening(rest)
        self._masks: dict[tuple[int, Room, bool], bitmask.Mask] = {}

    def passed(self, token_id: int) -> tuple[bytes, ...]:
        """See ``Reopening``."""
        return self._known[token_id].passed

    def in_question(self, num_inside: int, room: Room, *, is_outermost: bool) -> bitmask.Mask:
        """The tokens behind which there may be few items to choose from, in an array of ``room`` that ``num_inside`` open
        containers are in; and those that ``passed`` items. is_outermost: nothing is watched around that array."""
        key = num_inside, room, is_outermost
        known = self._masks.get(key)
        if known is None:
            ids = (one for one, found in self._known.items() if not _is_fine(found, *key))
            known = self._masks[key] = bitmask.of_ids(self._vocab_size, ids)
        return known


def _reopening(text: bytes) -> Reopening:
    """text: outside of strings at first."""
    found = _ITEMS.fullmatch(text)
    if found is None:
        return Reopening(len(_CLOSER.findall(text)), (), None)
    return Reopening(len(_CLOSER.findall(found[1])), tuple(_ITEM.findall(found[2])), found[3].rstrip())


def _is_fine(found: Reopening, num_inside: int, room: Room, is_outermost: bool) -> bool:
    if found.num_closed < num_inside:
        return True
    if found.begun is None or found.passed:
        return False
    if found.num_closed > num_inside:
        return is_outermost and found.num_closed == num_inside + 1
    if found.begun[:1] != b'"':
        return not found.begun or (room.members and found.begun in (b"{", b'{"'))
    return room.text and found.begun.count(b'"') == 1 if found.begun[1:] else room.strings
