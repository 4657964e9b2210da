"""The schema compiler on real schemas with instances: what it compiles, what it gets right, how long it takes.

Runs on any folder of ``*.jsonl`` or ``*.jsonl.xz`` files with one schema a line:
``{"id", "schema", "tests": [{"valid", "data"}]}`` (the format of MaskBench). Each instance is fed token by token as
``json.dumps`` writes it; before each token the mask is computed and timed, as the server does it: into a row that is
there. ``invalid accepted`` must be 0: an instance that is not valid came through. Where the grammar forces text, its own
tokens for that text are fed: a token across the end of forced text is never offered, though the document is in the
language. With ``--peers`` llguidance's own strict ``%json`` runs on the same schemas and instances, and so does xgrammar
where it is installed. ``--clock cpu`` measures the time of the thread, for a busy machine. The last line is one JSON
document.

    python benchmarks/maskbench.py --data ../shared/data/maskbench --tokenizer tokenizer.json --order any --open-objects
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import json
import lzma
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from llguidance import LLMatcher, LLTokenizer

from common import finish
from interlock.constraints import bitmask
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError
from interlock.constraints.providers.llguidance import LLGuidanceGrammar
from interlock.constraints.providers.llguidance_limits import parser_limits
from interlock.constraints.providers.llguidance_tokenizer import SLICES
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax, load_schema
from interlock.constraints.schema.guards.matcher import GuardedGrammar
from interlock.constraints.schema.guards.turn import GuardedTurn, Value
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.core.tokenizer import Vocabulary
from interlock.tokenization.fast_tokenizer import is_ordinary

Clock = Callable[[], float]  # seconds

_SEPARATORS = (",", ":")
_WITHOUT_FORMATS = ("restored_uniqueItems",)
"""Files whose instances were judged with formats as annotations: there are valid ones with a date-time without a zone."""


class RefusedError(Exception):
    """The schema was not compiled."""


class Run(Protocol):
    """A matcher for one instance."""

    def fill(self) -> None:
        """Compute the mask: this is what is timed."""
        ...

    def allows(self, token: int) -> bool:
        """By the mask that was computed."""
        ...

    def consume(self, token: int) -> bool: ...
    def forced(self) -> list[int]: ...
    def accepts_end(self) -> bool: ...


class Compiler(Protocol):
    name: str

    def compile(self, schema: Any) -> Any:
        """Raises ``RefusedError``."""
        ...

    def start(self, compiled: Any) -> Run: ...


class _Native:
    def __init__(self, matcher: LLMatcher, num_words: int) -> None:
        self._matcher = matcher
        self._row = np.zeros(num_words, dtype=np.int32)

    def fill(self) -> None:
        self._matcher.unsafe_compute_mask_ptr(self._row.ctypes.data, self._row.nbytes)

    def allows(self, token: int) -> bool:
        return bitmask.is_allowed(self._row, token)

    def consume(self, token: int) -> bool:
        return self._matcher.consume_token(token)

    def forced(self) -> list[int]:
        return self._matcher.compute_ff_tokens()

    def accepts_end(self) -> bool:
        return not self._matcher.is_error() and self._matcher.is_accepting()


class _Served:
    """The matcher of the server, which fills a row that is there."""

    def __init__(self, matcher: Matcher, num_words: int) -> None:
        self._matcher = matcher
        self._row = np.zeros(num_words, dtype=np.int32)

    def fill(self) -> None:
        try:
            self._matcher.fill(self._row)
        except MatcherError:
            self._row[:] = 0

    def allows(self, token: int) -> bool:
        return bitmask.is_allowed(self._row, token)

    def consume(self, token: int) -> bool:
        with contextlib.suppress(MatcherError):
            self._matcher.accept(token)
            return True
        return False

    def forced(self) -> list[int]:
        return [] if self._matcher.error else self._matcher.forced_tokens()

    def accepts_end(self) -> bool:
        return self._matcher.error is None and self._matcher.is_accepting


@dataclass(slots=True)
class Interlock:
    tokenizer: LLTokenizer
    options: SchemaOptions
    name: str = "interlock"

    def compile(self, schema: Any) -> CompiledGrammar:
        syntax = json_syntax(*_SEPARATORS, flexible=False)
        compiled = compile_schema(load_schema(json.dumps(schema)), self.options, syntax, "j")
        if compiled.problems:
            raise RefusedError(compiled.problems[0].reason)
        lark = f"start: {compiled.start}\n{compiled.lark}"

        def native() -> LLMatcher:
            return _checked(LLMatcher(self.tokenizer, lark, log_level=0, limits=parser_limits()))

        num_words = bitmask.num_words(self.tokenizer.vocab_size)
        grammar = LLGuidanceGrammar(native(), (self.tokenizer.eos_token,), num_words, len(lark), native)
        if compiled.guards is None:
            return grammar
        turn = GuardedTurn(Value(0), (compiled.guards,))
        return GuardedGrammar(grammar, turn, guard_vocabulary(self.tokenizer))

    def start(self, compiled: CompiledGrammar) -> Run:
        return _Served(compiled.matcher(), bitmask.num_words(self.tokenizer.vocab_size))


@functools.cache
def guard_vocabulary(tokenizer: LLTokenizer) -> GuardVocabulary:
    """Of a tokenizer, built once."""
    ids = range(tokenizer.vocab_size)
    special = frozenset(number for number in ids if tokenizer.is_special_token(number))
    return GuardVocabulary(
        Vocabulary(
            tokens=tuple(b"" if number in special else tokenizer.decode_bytes([number]) for number in ids),
            special_ids=special,
            control_ids=special,
            stop_ids=(tokenizer.eos_token,),
        )
    )


@dataclass(slots=True)
class PercentJson:
    tokenizer: LLTokenizer
    name: str = "llguidance %json"

    def compile(self, schema: Any) -> LLMatcher:
        overrides: Any = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        try:
            grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=overrides)
        except ValueError as error:
            raise RefusedError(str(error)) from None
        return _checked(LLMatcher(self.tokenizer, grammar, log_level=0))

    def start(self, compiled: LLMatcher) -> Run:
        return _Native(compiled.deep_copy(), bitmask.num_words(self.tokenizer.vocab_size))


def _checked(matcher: LLMatcher) -> LLMatcher:
    if matcher.is_error():
        raise RefusedError(matcher.get_error().splitlines()[0])
    return matcher


@dataclass(slots=True)
class Tally:
    schemas: int = 0
    compiled: int = 0
    refused: int = 0
    unsatisfiable: int = 0  # of the refused: no instance is valid, and the refusal says that none can be
    right: int = 0
    invalid_accepted: int = 0
    schemas_invalid_accepted: int = 0
    valid_rejected: int = 0
    schemas_valid_rejected: int = 0
    compile_ms: list[float] = field(default_factory=list)
    mask_us: list[float] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def summary(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            name: value for name in self.__dataclass_fields__ if isinstance(value := getattr(self, name), int)
        }
        out["compile_ms"] = _quantiles(self.compile_ms, {"p50": 0.5, "p99": 0.99, "max": 1.0})
        out["mask_us"] = _quantiles(self.mask_us, {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0})
        return out


def _quantiles(values: list[float], wanted: dict[str, float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {}
    return {name: round(ordered[min(int(len(ordered) * q), len(ordered) - 1)], 2) for name, q in wanted.items()}


def measure(
    compiler: Compiler, tokenizer: LLTokenizer, case: dict[str, Any], clock: Clock
) -> tuple[Tally, list[str]]:
    """One schema with its instances, and what went wrong."""
    tally, wrong = Tally(schemas=1), []
    gc.collect(0)  # between the schemas, not inside one: as a compile helper does it
    begin = clock()
    try:
        compiled = compiler.compile(case["schema"])
    except (RefusedError, RuntimeError) as refused:  # a native compiler's way to refuse is a RuntimeError
        tally.refused = 1
        is_empty = not any(test["valid"] for test in case["tests"])
        tally.unsatisfiable = int(is_empty and "no document is valid" in str(refused))
        return tally, [f"refused: {str(refused)[:160]}"]
    finally:
        tally.compile_ms.append((clock() - begin) * 1e3)
    tally.compiled = 1
    for test in case["tests"]:
        text = json.dumps(test["data"], separators=_SEPARATORS, ensure_ascii=False)
        accepted = replay(compiler.start(compiled), tokenizer, text, tally.mask_us, clock)
        if accepted and not test["valid"]:
            tally.invalid_accepted += 1
            wrong.append(f"invalid accepted: {text[:160]}")
        elif test["valid"] and not accepted:
            tally.valid_rejected += 1
            wrong.append(f"valid rejected: {text[:160]}")
    tally.schemas_invalid_accepted = int(tally.invalid_accepted > 0)
    tally.schemas_valid_rejected = int(tally.valid_rejected > 0)
    tally.right = int(not wrong)
    return tally, wrong


def replay(run: Run, tokenizer: LLTokenizer, text: str, mask_us: list[float], clock: Clock) -> bool:
    tokens, at = tokenizer.tokenize_str(text), 0
    while at < len(tokens):
        begin = clock()
        run.fill()
        mask_us.append((clock() - begin) * 1e6)
        token = tokens[at]
        if not run.allows(token):
            forced = run.forced()
            rest, prefix = tokenizer.decode_bytes(tokens[at:]), tokenizer.decode_bytes(forced)
            if not forced or not rest.startswith(prefix):
                return False
            tokens, at = [*forced, *tokenizer.tokenize_bytes(rest[len(prefix) :])], 0
            token = tokens[0]
        if not run.consume(token):
            return False
        at += 1
    return run.accepts_end()


def files_of(folder: Path) -> list[Path]:
    """The files with schemas, in order."""
    return sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.xz")))


def format_mode(path: Path) -> Literal["assert", "annotation"]:
    """What formats are in a file."""
    return "annotation" if path.name.startswith(_WITHOUT_FORMATS) else "assert"


def cases(path: Path, sample: int) -> Iterator[dict[str, Any]]:
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            if index % sample == 0 and line.strip():
                yield json.loads(line)


def xgrammar_peer(tokenizer: LLTokenizer, *, open_objects: bool) -> Compiler | None:
    """``None`` where it is not installed."""
    try:
        from maskbench_xgrammar import XGrammar
    except ImportError:
        return None
    ids = range(tokenizer.vocab_size)
    texts = [b"" if tokenizer.is_special_token(number) else tokenizer.decode_bytes([number]) for number in ids]
    return XGrammar(texts, [tokenizer.eos_token], open_objects=open_objects)


def load_tokenizer(path: Path) -> LLTokenizer:
    """The engine's loader takes every added token for a special one; those that are text are text here, as in the server."""
    data = path.read_bytes()
    content = json.loads(lzma.decompress(data) if path.suffix == ".xz" else data)
    known = content["model"]["vocab"]
    content["added_tokens"] = [
        token
        for token in content.get("added_tokens", ())
        if token["special"] or token["content"] not in known or not is_ordinary(token["content"])
    ]
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "tokenizer.json"
        plain.write_text(json.dumps(content), "utf-8")
        return LLTokenizer(str(plain), slices=SLICES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json or tokenizer.json.xz")
    parser.add_argument("--order", choices=("any", "declared"), default="any")
    parser.add_argument("--open-objects", action="store_true")
    parser.add_argument("--no-guards", action="store_true", help="grammar alone; what needs a guard is refused")
    parser.add_argument("--sample", type=int, default=1, help="every N-th schema of each file")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--peers", action="store_true", help="run llguidance's %%json and xgrammar too")
    parser.add_argument("--verbose", action="store_true", help="list every schema that is not right")
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()

    clock = time.perf_counter if args.clock == "wall" else time.thread_time
    tokenizer = load_tokenizer(args.tokenizer)
    guard_vocabulary(tokenizer)  # a server has it before its first request
    gc.disable()
    gc.freeze()
    options = SchemaOptions(
        open_objects=args.open_objects, property_order=args.order, guards=not args.no_guards
    )
    compilers: list[Compiler] = [Interlock(tokenizer, options)]
    absent = []
    if args.peers:
        compilers.append(PercentJson(tokenizer))
        other = xgrammar_peer(tokenizer, open_objects=args.open_objects)
        compilers += [other] if other is not None else []
        absent = [] if other is not None else ["xgrammar"]
    files = files_of(args.data)
    results: dict[str, Any] = {}
    for compiler in compilers:
        total, datasets = Tally(), {}
        for path in files:
            tally = Tally()
            if isinstance(compiler, Interlock):
                compiler.options = replace(options, format_mode=format_mode(path))
            for case in cases(path, args.sample):
                found, wrong = measure(compiler, tokenizer, case, clock)
                tally.add(found)
                if args.verbose and not args.json:
                    for text in wrong:
                        print(f"{compiler.name} {case.get('id')}: {text}")
            datasets[path.name.partition(".")[0]] = tally.summary()
            total.add(tally)
        results[compiler.name] = {"total": total.summary(), "datasets": datasets}
        if not args.json:
            print(compiler.name, json.dumps(results[compiler.name]["total"], indent=1))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    settings = {
        "order": args.order,
        "open_objects": args.open_objects,
        "guards": not args.no_guards,
        "sample": args.sample,
        "clock": args.clock,
    }
    finish(
        "maskbench",
        {**settings, "results": results, "not_installed": absent, "peak_rss_mib": round(peak_mib, 1)},
    )


if __name__ == "__main__":
    main()
