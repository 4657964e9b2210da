"""What a schema becomes, and why a document is or is not among what is generated."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jsonschema.exceptions import best_match

from interlock.constraints import bitmask
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.constraints.engine_trial import refusal
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError, Provider
from interlock.constraints.schema import load_documents
from interlock.constraints.schema.guards.matcher import GuardedGrammar
from interlock.constraints.schema.guards.turn import GuardedTurn
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.constraints.validator import validator
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.tokenizer import Tokenizer

_MAX_SAMPLE = 4_000  # bytes of one walk
_WALKS = 30
_CLOSERS = b'"]}'
_READABLE = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
_MAX_SHOWN = 200  # characters of a document in a reason
_INTEGERS = ": integers are written without fraction"
_SHOWN = 8  # bytes named in a reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """position: character of the text where it stops, ``None`` if it is accepted."""

    accepted: bool
    position: int | None = None
    reason: str = ""


class SchemaCheck:
    """One schema over a vocabulary in which every byte has a token of its own.

    Raises ``InterlockError`` for a schema that is refused.
    """

    def __init__(
        self,
        value: JsonValue,
        provider: Provider,
        tokenizer: Tokenizer,
        documents: Mapping[str, str] = NO_DOCUMENTS,
    ) -> None:
        self._value = value
        self._validator = validator(json.loads(value.schema), documents)
        vocabulary = tokenizer.vocabulary
        self._ids = {text[0]: number for number, text in enumerate(vocabulary.tokens) if len(text) == 1}
        self._bytes = {number: byte for byte, number in self._ids.items()}
        self._stop_ids = vocabulary.stop_ids
        self._row = np.zeros(bitmask.num_words(vocabulary.size), np.int32)
        known, trial = load_documents(documents), partial(refusal, provider)
        lowered = lower(ConstraintSpec(root=value), {}, documents=known, trial=trial)
        self._grammar = guarded(provider, lowered)

    def verdict(self, text: str) -> Verdict:
        """Whether the document ``text`` is generated; white space between its tokens does not count."""
        try:
            data = json.loads(text)
        except ValueError as error:
            return Verdict(False, getattr(error, "pos", 0), f"not JSON: {error}")
        stop = self._stop(list(respaced(text, self._value)))
        if stop is None:
            return Verdict(True)
        position, expected = stop
        spellings = {self._write(_integral(data)): _INTEGERS, self._write(data): ""}
        for written, rule in reversed(spellings.items()):
            if self._stop(list(enumerate(written))) is None:
                shown = f"in this spelling: {written}" if len(written) < _MAX_SHOWN else "in another spelling"
                return Verdict(True, None, f"{shown} (it differs from character {position} on{rule})")
        return Verdict(False, position, self._reason(text, data, position, expected))

    def sample(self, seed: int = 0) -> str | None:
        """A valid document from a random walk that tends to the end; ``None`` if none was found."""
        chooser = random.Random(seed)  # noqa: S311  no secret
        for _ in range(_WALKS):
            text = self._walk(chooser)
            if text is not None and self._error(json.loads(text)) is None:
                return text
        return None

    def _write(self, data: Any) -> str:
        separators = (self._value.item_separator, self._value.key_separator)
        return json.dumps(data, ensure_ascii=False, separators=separators)

    def _stop(self, chars: list[tuple[int, str]]) -> tuple[int, str] | None:
        """Where the grammar stops and what it expects there, ``None`` if the text is whole."""
        matcher = self._grammar.matcher()
        offset, end = 0, chars[-1][0] + 1 if chars else 0
        try:
            for offset, char in chars:
                for byte in char.encode():
                    allowed = self._allowed(matcher)
                    if self._ids[byte] not in allowed:
                        return offset, self._named(allowed)
                    matcher.accept(self._ids[byte])
            allowed = self._allowed(matcher)
            return None if allowed.intersection(self._stop_ids) else (end, self._named(allowed))
        except MatcherError as error:
            return offset, f"a value that is possible ({error})"
        finally:
            matcher.close()

    def _allowed(self, matcher: Matcher) -> set[int]:
        matcher.fill(self._row)
        return set(np.flatnonzero(np.unpackbits(self._row.view(np.uint8), bitorder="little")).tolist())

    def _named(self, allowed: set[int]) -> str:
        found = sorted(self._bytes[number] for number in allowed if number in self._bytes)
        shown = [chr(byte) if 0x20 < byte < 0x7F else f"\\x{byte:02x}" for byte in found if byte != 0x20]
        names = [*shown[:_SHOWN], *(["…"] if len(shown) > _SHOWN else [])]
        names += ["a space"] if 0x20 in found else []
        return " ".join([*names, *(["the end"] if allowed.intersection(self._stop_ids) else [])]) or "nothing"

    def _reason(self, text: str, data: Any, position: int, expected: str) -> str:
        here = repr(text[position]) if position < len(text.rstrip()) else "the end"
        said = self._error(data) or (
            "valid by the schema, but outside what is generated: the order of keys, undeclared keys, or a spelling"
        )
        return f"at '{pointer_of(text[:position])}' expected {expected}, not {here}; {said}"

    def _error(self, data: Any) -> str | None:
        try:
            error = best_match(self._validator.iter_errors(data))
        except Exception as failure:  # noqa: BLE001 - a foreign library, on the schemas of strangers
            return f"the validator cannot tell: {failure}"[:300]
        return None if error is None else f"{error.message[:300]}"

    def _walk(self, chooser: random.Random) -> str | None:
        matcher, out = self._grammar.matcher(), bytearray()
        try:
            while len(out) < _MAX_SAMPLE:
                allowed = self._allowed(matcher)
                if allowed.intersection(self._stop_ids):
                    return out.decode()
                found = sorted(self._bytes[number] for number in allowed if number in self._bytes)
                if not found:
                    return None
                out.append(_choose(found, chooser))
                matcher.accept(self._ids[out[-1]])
        except MatcherError:
            return None
        finally:
            matcher.close()
        return None


def _choose(found: list[int], chooser: random.Random) -> int:
    closers = [byte for byte in found if byte in _CLOSERS]
    readable = [byte for byte in found if byte in _READABLE]
    if closers and (not readable or chooser.random() < 0.3):
        return chooser.choice(closers)
    return chooser.choice(readable or [byte for byte in found if 0x20 <= byte < 0x7F] or found)


def guarded(provider: Provider, lowered: LoweredConstraint) -> CompiledGrammar:
    """The grammar with the guards of ``lowered``."""
    grammar = provider.compile(lowered.grammar)
    if not lowered.guards:
        return grammar
    return GuardedGrammar(grammar, GuardedTurn.from_json(lowered.guards), GuardVocabulary(provider.vocabulary))


def respaced(text: str, value: JsonValue) -> Iterator[tuple[int, str]]:
    """The characters of a JSON text with the spacing of ``value``, each with its place in ``text``."""
    separators = {",": value.item_separator, ":": value.key_separator}
    in_string = escaped = False
    for offset, char in enumerate(text):
        if in_string:
            yield offset, char
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char not in " \t\r\n":
            in_string = char == '"'
            for written in separators.get(char, char):
                yield offset, written


def pointer_of(prefix: str) -> str:
    """JSON Pointer of the value in which a JSON text, cut after ``prefix``, goes on."""
    steps: list[str | int] = []
    string, in_string, escaped, last = "", False, False, ""
    for char in prefix:
        if in_string:
            string += char
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
            last = last if in_string else json.loads(string)
        elif char == '"':
            string, in_string = char, True
        elif char in "{[":
            steps.append("" if char == "{" else 0)
        elif char in "}]":
            steps.pop()
        elif char == ":":
            steps[-1] = last
        elif char == ",":
            step = steps[-1]
            steps[-1] = step + 1 if isinstance(step, int) else ""
    if steps and steps[-1] == "":
        steps.pop()  # between two keys: the object itself
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _integral(data: Any) -> Any:
    """Numbers without a fraction as integers, the way they are written."""
    if isinstance(data, dict):
        return {key: _integral(item) for key, item in data.items()}
    if isinstance(data, list):
        return [_integral(item) for item in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data
