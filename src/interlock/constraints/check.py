"""What a schema becomes, and why a document is or is not among what is generated."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from interlock.constraints import bitmask
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.constraints.engine_trial import refusal
from interlock.constraints.explain import Place, explain
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError, Provider
from interlock.constraints.sample import Sampler
from interlock.constraints.schema import GUARDED, SchemaOptions, load_documents
from interlock.constraints.schema.guards.matcher import GuardedGrammar
from interlock.constraints.schema.guards.turn import GuardedTurn
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.constraints.validator import validator
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError

_MAX_SHOWN = 200  # characters of a document in a reason
_INTEGERS = ": integers are written without fraction"
_SHOWN = 8  # names of bytes in a reason
_STRUCTURE = b',:}]"'
_FREE = 64  # so many bytes may follow: it is free text
_RANGES = (b"09", b"az", b"AZ")
_POLICIES: dict[str, dict[str, Any]] = {
    "its keys are not in the order of the schema (property_order 'any' would do)": {"property_order": "any"},
    "it has undeclared keys (open_objects would do)": {"open_objects": True},
    "it has undeclared keys, or keys in another order (open_objects with property_order 'any' would do)": {
        "open_objects": True,
        "property_order": "any",
    },
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """position: character of the text where it stops, ``None`` if it is accepted."""

    accepted: bool
    position: int | None = None
    reason: str = ""


class SchemaCheck:
    """One schema over a vocabulary in which every byte has a token of its own. documents, options: see ``schema_report``.

    Raises ``InterlockError`` for a schema that is refused.
    """

    def __init__(
        self,
        value: JsonValue,
        provider: Provider,
        tokenizer: Tokenizer,
        documents: Mapping[str, str] = NO_DOCUMENTS,
        options: SchemaOptions = GUARDED,
    ) -> None:
        self._value, self._provider, self._tokenizer, self._documents = value, provider, tokenizer, documents
        self._options = replace(options, documents=load_documents(documents))
        self._validator = validator(json.loads(value.schema), documents, assert_formats=True)
        vocabulary = tokenizer.vocabulary
        self._ids = {text[0]: number for number, text in enumerate(vocabulary.tokens) if len(text) == 1}
        self._bytes = {number: byte for byte, number in self._ids.items()}
        self._stop_ids = vocabulary.stop_ids
        self._row = np.zeros(bitmask.num_words(vocabulary.size), np.int32)
        trial = partial(refusal, provider)
        lowered = lower(ConstraintSpec(root=value), {}, options=self._options, trial=trial)
        self._grammar = guarded(provider, lowered)

    def verdict(self, text: str) -> Verdict:
        """Whether the document ``text`` is generated; white space between its tokens does not count."""
        constants: list[str] = []
        try:
            data = json.loads(text, parse_constant=constants.append)
        except (ValueError, RecursionError) as error:
            return Verdict(False, getattr(error, "pos", 0), f"not JSON: {error}")
        stop = self._stop(list(respaced(text, self._value)))
        if stop is None:
            return Verdict(True)
        position, expected = stop
        if constants:
            return Verdict(False, position, f"not JSON: {constants[0]} is no value")
        spellings = {self._write(_integral(data)): _INTEGERS, self._write(data): ""}
        for written, rule in reversed(spellings.items()):
            if self._stop(list(enumerate(written))) is None:
                shown = f"in this spelling: {written}" if len(written) < _MAX_SHOWN else "in another spelling"
                return Verdict(True, None, f"{shown} (it differs from character {position} on{rule})")
        return Verdict(False, position, self._reason(text, data, position, expected))

    def generates(self, text: str) -> bool:
        """Whether the JSON text is generated as it is, but for white space between its tokens."""
        return self._stop(list(respaced(text, self._value))) is None

    def sample(self, seed: int = 0) -> str | None:
        """A valid document; ``None`` if none was found within bounds."""
        sampler = Sampler(self._value, self._grammar, GuardVocabulary(self._provider.vocabulary), self._ids)
        return sampler.sample(seed, self._is_valid)

    def _is_valid(self, text: str) -> bool:
        try:
            return bool(self._validator.is_valid(json.loads(text)))
        except Exception:  # noqa: BLE001 - a foreign library, on the schemas of strangers
            return True  # it cannot tell; the grammar can

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
        found = {self._bytes[number] for number in allowed if number in self._bytes}
        names = [*_named_bytes(found), *(["the end"] if allowed.intersection(self._stop_ids) else [])]
        return " ".join(names) or "nothing"

    def _reason(self, text: str, data: Any, position: int, expected: str) -> str:
        here = repr(text[position]) if position < len(text.rstrip()) else "the end"
        place = Place(text, position)
        said = explain(self._validator, data, place) or self._policy(text)
        where = f"at '{place.pointer}'" if place.pointer else "at the root"
        return f"{where} expected {expected}, not {here}; {said}"

    def _policy(self, text: str) -> str:
        """Why a document that is valid, as far as one can see, is not generated."""
        for told, changes in _POLICIES.items():
            value = replace(self._value, **changes)
            if value != self._value and self._is_generated(text, value):
                return f"valid by the schema, but {told}"
        return (
            "valid by the schema, but a value or a key is written in another way than those that are generated"
        )

    def _is_generated(self, text: str, value: JsonValue) -> bool:
        try:
            other = SchemaCheck(value, self._provider, self._tokenizer, self._documents, self._options)
            return other.generates(text)
        except InterlockError:
            return False


def _named_bytes(found: set[int]) -> list[str]:
    """What closes first, then ranges of digits and letters, then the rest, so many as are shown."""
    left, names = set(found), []
    for byte in _STRUCTURE if len(found) < _FREE else _STRUCTURE[-1:]:
        if byte in left:
            names.append(repr(chr(byte)))
            left.remove(byte)
    for low, high in _RANGES:
        run = [byte for byte in range(low, high + 1) if byte in left]
        if len(run) > 2 and run[-1] - run[0] == len(run) - 1:
            names.append(f"{chr(run[0])}-{chr(run[-1])}")
            left.difference_update(run)
    names += [repr(chr(byte)) if 0x20 < byte < 0x7F else f"\\x{byte:02x}" for byte in sorted(left - {0x20})]
    shown = [*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])]
    return [*shown, *(["a space"] if 0x20 in left else [])]


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


def _integral(data: Any) -> Any:
    """Numbers without a fraction as integers, the way they are written."""
    if isinstance(data, dict):
        return {key: _integral(item) for key, item in data.items()}
    if isinstance(data, list):
        return [_integral(item) for item in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data
