"""What a guard must know of a vocabulary."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import get_args

import numpy as np

from interlock.constraints import bitmask
from interlock.constraints.bitmask import Ids
from interlock.constraints.schema.guards.marks import is_text, special_text
from interlock.constraints.schema.guards.notation import (
    JSON,
    BareKeys,
    NestedTags,
    Notation,
    Python,
    scalar_ends,
)
from interlock.constraints.schema.guards.reopeners import Reopeners
from interlock.constraints.schema.guards.rivals import Respelling
from interlock.constraints.schema.guards.values import spelling
from interlock.constraints.schema.guards.whole_keys import WholeKeys
from interlock.core.tokenizer import Vocabulary

COMPLETER = re.compile(rb'[",\]}]')
"""Bytes that may complete an item or a key."""

_END_OF_STRING = re.compile(rb'[^"\\]*(".*)', re.DOTALL)
_BEGINNING = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)
_SPACED = rb'^[ \t\n\r]+(?:$|["\[\]{},:0-9tfn-])'


def _respelt(manner: Respelling, ends: bytes) -> bytes:
    """A regex for the tokens of ``GuardVocabulary.respelt``. ends: see ``scalar_ends``."""
    end = b"[" + re.escape(ends) + b"]"
    match manner:
        case "value":
            return rb"^(?:[-+.0-9eE]+|[A-Za-z]+)(?:\s|" + end + b")|" + _SPACED
        case "scalar":
            return b'"|' + end + b"|" + _SPACED
        case "structure":
            return _SPACED
        case "escape":
            return rb"^u(?:$|[0-9a-fA-F])"
        case "hex":
            return rb"^[0-9a-fA-F\\]"
        case "character":
            return rb"\\"


def _crosses(notation: Notation, in_string: bool) -> bytes:
    """A regex for the tokens that may end an item so that another one must come, or begin that."""
    match notation:
        case NestedTags(mark=mark):
            return re.escape(mark)
        case BareKeys(quote=quote) if in_string:
            return re.escape(quote[-1:]) + rb".*,"
        case _ if in_string:
            quote = notation.quote if isinstance(notation, Python) else b'"'
            return rb"^(?:[^%b\\]|\\.)*%b.*," % (quote, quote)
        case _:
            return b","


def _closes(in_string: bool) -> bytes:
    """A regex for the tokens that may close a container of JSON."""
    return rb'".*[\]}]' if in_string else rb"[\]}]"


_MAX_KNOWN = 16_384
_MAX_FOLLOWING = 8


class GuardVocabulary:
    """A vocabulary, and which of its tokens can do what in a document. Built once. quoting: a row of the tokens with a quote.
    whole_keys: what the tokens with two hold. ends_of_strings: see ``_find_ends_of_strings``."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.special_ids = vocabulary.special_ids
        self.tokens = tuple(
            special_text(number) if number in self.special_ids else token
            for number, token in enumerate(vocabulary.tokens)
        )
        self.stop_ids = frozenset(vocabulary.stop_ids)
        self._vocab_size = vocabulary.size
        self.num_words = bitmask.num_words(vocabulary.size)
        tokens, apart = self.tokens, self.stop_ids
        order = [number for number, token in enumerate(tokens) if token and number not in apart]
        order.sort(key=tokens.__getitem__)
        self._texts = [tokens[number] for number in order]
        self._sorted_ids = np.array(order, dtype=np.int64)
        self.ids = dict(zip(reversed(self._texts), reversed(order), strict=True))
        self._longest = max(map(len, self._texts), default=0)
        self._reopeners = tuple(
            Reopeners(zip(order, self._texts, strict=True), vocabulary.size, in_string=in_string)
            for in_string in (False, True)
        )
        self._known: dict[bytes, bitmask.Mask] = {}
        self._prepared: set[Notation] = set()
        self.prepare(JSON)
        self._ways_out = self._find_ways_out()
        self.quoting = self._matching(rb'"')
        self.whole_keys = WholeKeys(zip(order, self._texts, strict=True))
        self.ends_of_strings = self._find_ends_of_strings()
        self._beyond: dict[bytes, Ids] = {}
        self._beginnings: dict[bytes, list[int]] = {}
        self._following: dict[bytes, tuple[Ids, Ids]] = {}
        self.step_ids = np.array(self._steps(), dtype=np.int64)

    def _find_ends_of_strings(self) -> dict[bytes, Ids]:
        """From what tokens write of a string of JSON in which they begin, in its plainest spelling, to those that end it by that."""
        found: dict[bytes, list[int]] = {}
        for number, token in zip(self._sorted_ids.tolist(), self._texts, strict=True):
            end = _BEGINNING.match(token)
            if end is not None:
                found.setdefault(_plainest(end[0]), []).append(number)
        return {rest: np.array(ids, dtype=np.int64) for rest, ids in found.items()}

    def _steps(self) -> list[int]:
        """Tokens of which one begins any text that can be spelt at all: single bytes, and the longer ones where the
        vocabulary lacks the byte."""
        found: list[int] = []
        for byte in (bytes((value,)) for value in range(256)):
            if byte in self.ids and is_text(byte):
                found.append(self.ids[byte])
            else:
                found += {self.ids[self.tokens[number]] for number in self.beyond(byte).tolist()}
        return sorted(found)

    def text(self, token_id: int) -> bytes:
        """The bytes of a token, a special one as ``marks.special_text`` spells it."""
        return self.tokens[token_id] if token_id < len(self.tokens) else b""

    def beginnings(self, text: bytes) -> list[int]:
        """The tokens that ``text`` may begin with."""
        found = self._beginnings.get(text)
        if found is None:
            if len(self._beginnings) >= _MAX_KNOWN:
                self._beginnings.clear()
            found = self._beginnings[text] = self._find_beginnings(text)
        return found

    def _find_beginnings(self, text: bytes) -> list[int]:
        heads = (text[:size] for size in range(1, min(len(text), self._longest) + 1))
        return [self.ids[head] for head in heads if head in self.ids]

    def beyond(self, text: bytes) -> Ids:
        """The tokens that begin with ``text``."""
        found = self._beyond.get(text)
        if found is None:
            if len(self._beyond) >= _MAX_KNOWN:
                self._beyond.clear()
            found = self._beyond[text] = self._find_beyond(text)
        return found

    def _find_beyond(self, text: bytes) -> Ids:
        start = bisect_left(self._texts, text)
        end = start
        if start < len(self._texts) and self._texts[start].startswith(text):
            end = bisect_left(self._texts, _successor(text), start)
        return self._sorted_ids[start:end]

    def following(self, text: bytes) -> tuple[Ids, Ids]:
        """Tokens that begin with ``text`` and go on, a few for each byte with which they do; and these bytes."""
        if text not in self._following:
            ids: list[int] = []
            bytes_: list[int] = []
            texts, size = self._texts, len(text)
            at = bisect_left(texts, text + b"\0")
            while at < len(texts) and texts[at].startswith(text):
                byte = texts[at][size]
                end = bisect_left(texts, _successor(texts[at][: size + 1]), at)
                few = self._sorted_ids[at : min(end, at + _MAX_FOLLOWING)].tolist()
                ids += few
                bytes_ += [byte] * len(few)
                at = end
            self._following[text] = np.array(ids, dtype=np.int64), np.array(bytes_, dtype=np.int64)
        return self._following[text]

    def prepare(self, notation: Notation) -> None:
        """Find out now what values in ``notation`` will need."""
        if notation in self._prepared:
            return
        self._prepared.add(notation)
        for manner in get_args(Respelling):
            self.respelt(manner, notation)
        for in_string in (False, True):
            self.crossers(notation, in_string=in_string)
            self.closers(in_string=in_string)

    def respelt(self, manner: Respelling, notation: Notation) -> bitmask.Mask:
        """The tokens that may write something in another than its plainest spelling, or end what only the next byte ends."""
        return self._matching(_respelt(manner, scalar_ends(notation)))

    def crossers(self, notation: Notation, *, in_string: bool) -> bitmask.Mask:
        """The tokens that may end an item so that another one must come, or begin that. in_string: it is an open string."""
        return self._matching(_crosses(notation, in_string))

    def closers(self, *, in_string: bool) -> bitmask.Mask:
        """The tokens that may close an array or object of JSON. in_string: behind a string that is open."""
        return self._matching(_closes(in_string))

    def reopeners(self, *, in_string: bool) -> Reopeners:
        """The tokens that begin more behind a comma of JSON. in_string: first they end a string that is open."""
        return self._reopeners[in_string]

    def way_out(self, token_id: int) -> int | bytes:
        """What of a token decides where it leads from inside a string of JSON: what follows that, if it ends it."""
        return self._ways_out.get(token_id, token_id)

    def _find_ways_out(self) -> dict[int, bytes]:
        ends = ((number, _END_OF_STRING.fullmatch(self.tokens[number])) for number in self._sorted_ids.tolist())
        return {number: end[1] for number, end in ends if end is not None}

    def _matching(self, regex: bytes) -> bitmask.Mask:
        """The tokens that ``regex`` finds something in, as a row."""
        found = self._known.get(regex)
        if found is None:
            search = re.compile(regex, re.DOTALL).search
            matches = np.fromiter(map(bool, map(search, self._texts)), np.bool_, len(self._texts))
            ids = self._sorted_ids[matches].tolist()
            found = self._known[regex] = bitmask.of_ids(self._vocab_size, ids)
        return found


def _plainest(end: bytes) -> bytes:
    """The end of a string, its quote included, in its plainest spelling."""
    try:
        return spelling(json.loads(b'"' + end))[1:] if b"\\" in end else end
    except ValueError:
        return end


def _successor(text: bytes) -> bytes:
    """The first text behind all that begin with ``text``."""
    kept = text.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else b"\xff" * (len(text) + 1)
