"""Documents from random walks through the masks of real schemas: each must be valid.

Runs on the folders of ``maskbench.py``, whose instances are not looked at. For each schema one walk in each manner: ``ends`` takes any
allowed token, but likes those that close something; ``strange`` likes escapes, control characters and scripts beyond ASCII; ``narrow`` takes
few different tokens, so that items and keys come again; ``any`` does not like anything. At a dead end of a guard the walk goes back as the
engine does, 64 times at most. A walk of ``--tokens`` tokens is closed by the search for an ending that answers have that are cut off.
python-jsonschema judges, jsonschema-rs beside it; numbers a second time by exact arithmetic.

The last line is one JSON document. ``invalid`` must be empty. disputed: the two do not agree. rounded: valid by the digits, not
by a reader's floats. repeated: valid, but an undeclared key comes twice. unfinished: no ending was found. failed: the matcher ended
the walk with an error. The same seed gives the same walks on every machine, except where the search for an ending runs out of time.

    python benchmarks/walks.py --data ../shared/data/maskbench --tokenizer tokenizer.json --sample 8
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from llguidance import LLTokenizer

from common import finish
from interlock.constraints import bitmask
from interlock.constraints.closers import closers
from interlock.constraints.declared import declared_literals, required_keys
from interlock.constraints.ending import EndingSearch
from interlock.constraints.ending_hints import EndingHints
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError
from interlock.constraints.schema import SchemaOptions
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.core.constraint import JsonValue
from interlock.engine.backtracking import MOST_BACKTRACKS
from maskbench import Interlock, RefusedError, cases, files_of, format_mode, guard_vocabulary, load_tokenizer
from oracle import Oracle

_MAX_LISTED = 1_000  # characters of a document in the last line
_DROPS = (0, 4, 16, 64)
"""So many tokens more are taken back until there is an ending."""
_LONGER = 3
"""A walk that cannot be closed is so many times as long."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a walk chooses. liked: it takes one of these, if there are any, with probability ``often``. to_end: the probability to take
    what closes, at the start; it grows with the walk."""

    liked: str
    often: float
    to_end: float


MANNERS = {
    "ends": Manner("closing", 0.0, 0.35),
    "strange": Manner("strange", 0.7, 0.1),
    "narrow": Manner("narrow", 0.9, 0.25),
    "any": Manner("closing", 0.0, 0.0),
}


@dataclass(frozen=True, slots=True)
class Walked:
    """text: ``None`` if there is no document; why says then what happened."""

    text: bytes | None
    num_backtracks: int = 0
    is_closed: bool = False
    why: str = ""


class Walker:
    """Walks through grammars over one vocabulary."""

    def __init__(self, vocabulary: GuardVocabulary, most: int) -> None:
        self._vocabulary = vocabulary
        self._most = most
        self._search = EndingSearch(vocabulary)
        self._kinds = _kinds(vocabulary)

    def walk(
        self, grammar: CompiledGrammar, manner: Manner, chooser: random.Random, hints: EndingHints
    ) -> Walked:
        matcher = grammar.matcher()
        try:
            return self._walk(matcher, manner, chooser, hints)
        finally:
            matcher.close()

    def _walk(self, matcher: Matcher, manner: Manner, chooser: random.Random, hints: EndingHints) -> Walked:
        row = np.zeros(self._vocabulary.num_words, dtype=np.int32)
        taken: list[int] = []
        num_backtracks = step = 0
        is_closable = self._search.find(matcher, hints) is not None
        most = self._most * (1 if is_closable else _LONGER)
        while step < most:
            step += 1
            try:
                matcher.fill(row)
            except MatcherError as error:
                undone = matcher.backtrack(matcher.num_held) if num_backtracks < MOST_BACKTRACKS else 0
                if not undone:
                    return Walked(None, num_backtracks, why=f"{error} after {self._text(taken)[-200:]!r}")
                num_backtracks += 1
                del taken[-undone:]
                continue
            token_id = self._choose(row, manner, min(1.0, step / self._most), chooser)
            if token_id in self._vocabulary.special_ids:  # nothing but the end is one here
                return Walked(self._text(taken), num_backtracks)
            try:
                matcher.accept(token_id)
            except MatcherError as error:  # a limit of the engine, met with a token that it had allowed
                return Walked(None, num_backtracks, why=f"{error} after {self._text(taken)[-200:]!r}")
            taken.append(token_id)
        if is_closable:
            return self._closed(matcher, taken, num_backtracks, hints)
        return Walked(None, num_backtracks, why="unfinished")

    def _closed(self, matcher: Matcher, taken: list[int], num_backtracks: int, hints: EndingHints) -> Walked:
        """With an ending from the last place that has one, of those that are looked at: as answers are closed."""
        for num_dropped in _DROPS:
            matcher.rollback(min(num_dropped, len(taken)))
            del taken[max(0, len(taken) - num_dropped) :]
            ending = self._search.find(matcher, hints)
            if ending is not None:
                return Walked(self._text(taken) + ending.text, num_backtracks, is_closed=True)
        return Walked(None, num_backtracks, why="unfinished")

    def _choose(self, row: bitmask.Mask, manner: Manner, done: float, chooser: random.Random) -> int:
        wanted = ["closing"] if chooser.random() < manner.to_end + done * done / 2 else []
        wanted += [manner.liked] if chooser.random() < manner.often else []
        for kind in wanted:
            found = _any_of(row & self._kinds[kind], chooser)
            if found is not None:
                return found
        found = _any_of(row, chooser)
        assert found is not None, "the mask of a matcher without an error is empty"
        return found

    def _text(self, taken: list[int]) -> bytes:
        return b"".join(map(self._vocabulary.text, taken))


def _any_of(row: bitmask.Mask, chooser: random.Random) -> int | None:
    """One of the allowed ids, each as likely; ``None`` if there are none."""
    sums = np.cumsum(np.bitwise_count(row.view(np.uint32)), dtype=np.int64)
    if not sums[-1]:
        return None
    number = chooser.randrange(int(sums[-1]))
    word = int(np.searchsorted(sums, number, side="right"))
    before = int(sums[word - 1]) if word else 0
    return 32 * word + bitmask.allowed_ids(row[word : word + 1])[number - before]


def _kinds(vocabulary: GuardVocabulary) -> Mapping[str, bitmask.Mask]:
    ids = [number for number in range(len(vocabulary.tokens)) if number not in vocabulary.special_ids]
    tests = {
        "closing": lambda text: text[:1] in (b'"', b"]", b"}"),
        "strange": lambda text: b"\\" in text or any(byte < 0x20 or byte > 0x7E for byte in text),
        "narrow": lambda text: len(text) == 1 and text in b'ab"01]},:[{.',
    }
    size = len(vocabulary.tokens)
    stops = bitmask.of_ids(size, vocabulary.stop_ids)
    rows = {
        name: bitmask.of_ids(size, (one for one in ids if test(vocabulary.tokens[one])))
        for name, test in tests.items()
    }
    return {**rows, "closing": rows["closing"] | stops}


@dataclass(slots=True)
class Found:
    """What came of all walks."""

    schemas: int = 0
    refused: int = 0
    walked: int = 0
    documents: int = 0
    characters: int = 0
    closed: int = 0
    valid: int = 0
    backtracks: int = 0
    walks_gone_back: int = 0
    lists: dict[str, list[dict[str, str]]] = field(
        default_factory=lambda: {
            name: []
            for name in ("invalid", "disputed", "rounded", "repeated", "unjudged", "unfinished", "failed")
        }
    )
    by_manner: Counter[str] = field(default_factory=Counter)

    def summary(self) -> dict[str, Any]:
        counts = {
            name: value for name in self.__dataclass_fields__ if isinstance(value := getattr(self, name), int)
        }
        return {**counts, "documents_by_manner": dict(self.by_manner), **self.lists}


class Run:
    """All walks with one seed."""

    def __init__(self, interlock: Interlock, walker: Walker, seed: str, *, is_loud: bool = False) -> None:
        self._is_loud = is_loud
        self._interlock = interlock
        self._walker = walker
        self._seed = seed
        self.found = Found()

    def schema(self, file: str, case: dict[str, Any]) -> None:
        """Compile one schema and walk in each manner."""
        found, schema = self.found, case["schema"]
        found.schemas += 1
        try:
            grammar = self._interlock.compile(schema)
        except (RefusedError, RuntimeError):
            found.refused += 1
            return
        found.walked += 1
        oracle = Oracle(schema, assert_formats=self._interlock.options.format_mode == "assert")
        root = JsonValue(json.dumps(schema))
        hints = EndingHints(closers(root), declared_literals(root), required_keys(root))
        for name, manner in MANNERS.items():
            chooser = random.Random(f"{self._seed}/{file}/{case['id']}/{name}")
            where = {"file": file, "id": str(case["id"]), "manner": name}
            grammar = self._interlock.compile(schema) if grammar.is_spent else grammar
            self._judge(where, self._walker.walk(grammar, manner, chooser, hints), oracle)

    def _judge(self, where: dict[str, str], walked: Walked, oracle: Oracle) -> None:
        found = self.found
        found.backtracks += walked.num_backtracks
        found.walks_gone_back += int(walked.num_backtracks > 0)
        if walked.text is None:
            kind = "unfinished" if walked.why.startswith("unfinished") else "failed"
            self._list(kind, {**where, "why": walked.why})
            return
        found.documents += 1
        found.characters += len(walked.text)
        found.closed += int(walked.is_closed)
        found.by_manner[where["manner"]] += 1
        text = walked.text.decode()
        opinion = oracle.judge(text)
        if opinion.answer == "valid":
            found.valid += 1
        else:
            self._list(opinion.answer, {**where, "why": opinion.why, "text": text[:_MAX_LISTED]})

    def _list(self, kind: str, entry: dict[str, str]) -> None:
        self.found.lists[kind].append(entry)
        if self._is_loud:
            print(kind, json.dumps(entry, ensure_ascii=False), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json or tokenizer.json.xz")
    parser.add_argument("--order", choices=("any", "declared"), default="any")
    parser.add_argument("--open-objects", action="store_true")
    parser.add_argument("--sample", type=int, default=1, help="every N-th schema of each file")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--tokens", type=int, default=120, help="of one walk, before it is closed")
    parser.add_argument("--only", default="", help="schemas whose id contains this")
    parser.add_argument(
        "--progress", action="store_true", help="print a line for each file, and what is not valid as it comes"
    )
    args = parser.parse_args()

    begin = time.perf_counter()
    tokenizer: LLTokenizer = load_tokenizer(args.tokenizer)
    options = SchemaOptions(open_objects=args.open_objects, property_order=args.order, guards=True)
    interlock = Interlock(tokenizer, options)
    run = Run(interlock, Walker(guard_vocabulary(tokenizer), args.tokens), args.seed, is_loud=args.progress)
    gc.freeze()
    for path in files_of(args.data):
        interlock.options = replace(options, format_mode=format_mode(path))
        for case in cases(path, args.sample):
            if args.only in str(case["id"]):
                run.schema(path.name.partition(".")[0], case)
        if args.progress:
            lists = {name: len(found) for name, found in run.found.lists.items()}
            print(path.name, run.found.walked, lists, round(time.perf_counter() - begin), flush=True)
    settings = {name: getattr(args, name) for name in ("order", "open_objects", "sample", "seed", "tokens")}
    seconds = round(time.perf_counter() - begin, 1)
    finish("walks", {**settings, **run.found.summary(), "seconds": seconds})


if __name__ == "__main__":
    main()
