"""What a scripted fake model wants to say.

A script is a list of entries. The entry whose ``when`` occurs last in the prompt speaks; one without ``when``
speaks where no other does. It says its text, then the stop token.

Nothing is remembered between steps: how much has been said is the longest end of the sequence so far that is a
beginning of the text. So a replayed or rebatched sequence goes on where it was; a text must not begin with what
the prompt ends with. Tokens are compared by their bytes, so a mask that forces another tokenisation does no harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError

# A text is a tuple of units: a byte, or 256 + the id of a special token.
_SPECIAL = 256
Units = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEntry:
    """say: pieces in order; in a plain string, spellings of special tokens are those tokens, and in
    ``{"text": ...}`` they are ordinary text."""

    say: tuple[str | Mapping[str, str], ...]
    when: str | None = None


class Script:
    """Entries tied to a tokenizer. Immutable."""

    def __init__(self, entries: Sequence[ScriptEntry], tokenizer: Tokenizer) -> None:
        self._vocabulary = tokenizer.vocabulary
        self._tokens = tokenizer.vocabulary.tokens
        self._special_ids = tokenizer.vocabulary.special_ids
        self._special_tokens = tokenizer.special_tokens
        self._texts = [(entry.when, self._units(entry.say)) for entry in entries]
        self._longest_text = max((len(text) for _, text in self._texts), default=0)
        self._failures = [_failure_function(text) for _, text in self._texts]
        self._ids = {
            token: token_id
            for token_id, token in reversed(list(enumerate(self._vocabulary.tokens)))
            if token and token_id not in self._vocabulary.special_ids
        }
        self._longest = max(map(len, self._ids), default=0)

    def wanted(self, ids: Sequence[int]) -> dict[int, float]:
        """Tokens wanted after ``ids``, the longest of those that continue the text first."""
        spelled = b"".join(self._tokens[token_id] for token_id in ids)
        units = self._last_units(ids)
        found = [
            (num_said, place, -index)
            for index, (when, text) in enumerate(self._texts)
            if when is None or when.encode() in spelled  # else it cannot speak, and to look is quick
            for num_said in [_num_said(units, text, self._failures[index])]
            for place in [self._place(when, spelled, text[:num_said])]
            if place is not None
        ]
        if not found:
            return {}
        num_said, _, index = max(found)
        return self._next(self._texts[-index][1][num_said:])

    def _next(self, rest: Units) -> dict[int, float]:
        if not rest:
            return {token_id: 1.0 / (1 + i) for i, token_id in enumerate(self._vocabulary.stop_ids)}
        if rest[0] >= _SPECIAL:
            return {rest[0] - _SPECIAL: 1.0}
        wanted: dict[int, float] = {}
        spelled = b""
        for unit in rest[: self._longest]:
            if unit >= _SPECIAL:
                break
            spelled += bytes((unit,))
            if (token_id := self._ids.get(spelled)) is not None:
                wanted[token_id] = float(len(spelled))
        return wanted

    def _place(self, when: str | None, spelled: bytes, said: Units) -> int | None:
        """Where ``when`` occurs last in the prompt, which is what stands before ``said``; -1 for no condition,
        ``None`` for nowhere."""
        if when is None:
            return -1
        num_said = sum(1 if unit < _SPECIAL else len(self._tokens[unit - _SPECIAL]) for unit in said)
        place = spelled.rfind(when.encode(), 0, len(spelled) - num_said)
        return None if place < 0 else place

    def _last_units(self, ids: Sequence[int]) -> list[int]:
        """The end of ``ids``, at least as long as the longest text."""
        tokens: list[Sequence[int]] = []
        num_units = 0
        for token_id in reversed(ids):
            special = token_id in self._special_ids
            tokens.append((_SPECIAL + token_id,) if special else self._tokens[token_id])
            num_units += len(tokens[-1])
            if num_units >= self._longest_text:
                break
        return [unit for token in reversed(tokens) for unit in token]

    def _units(self, say: Sequence[str | Mapping[str, str]]) -> Units:
        units: list[int] = []
        for piece in say:
            if isinstance(piece, str):
                units += self._with_specials(piece)
            else:
                units += piece["text"].encode()
        return tuple(units)

    def _with_specials(self, text: str) -> list[int]:
        spellings = sorted(self._special_tokens, key=len, reverse=True)
        if not spellings:
            return list(text.encode())
        units: list[int] = []
        for part in re.split(f"({'|'.join(map(re.escape, spellings))})", text):
            special = self._special_tokens.get(part)
            units += part.encode() if special is None else (_SPECIAL + special,)
        return units


def load_script(path: Path) -> tuple[ScriptEntry, ...]:
    """Read a script: JSON, a list of ``{"when": text or null, "say": text or list of pieces}``.

    Raises ``InterlockError`` where the file is not that.
    """
    try:
        return tuple(_entry(value) for value in json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        message = f"{path}: not a script for the fake runner ({error})"
        raise InterlockError("invalid_value", message, hint='a list of {"when": ..., "say": ...}') from error


def _entry(value: dict[str, Any]) -> ScriptEntry:
    say, when = value["say"], value.get("when")
    pieces = (say,) if isinstance(say, str) else tuple(say)
    if not all(isinstance(piece, str) or list(piece) == ["text"] for piece in pieces):
        raise ValueError('a piece of "say" is a string or {"text": string}')
    if not (when is None or isinstance(when, str)):
        raise ValueError('"when" is a string or null')
    if unknown := value.keys() - {"say", "when"}:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    return ScriptEntry(say=pieces, when=when)


def _failure_function(text: Units) -> list[int]:
    """For each end of ``text``, the length of the longest proper beginning that ends there."""
    table = [0] * len(text)
    length = 0
    for i in range(1, len(text)):
        while length and text[i] != text[length]:
            length = table[length - 1]
        length += text[i] == text[length]
        table[i] = length
    return table


def _num_said(units: list[int], text: Units, failure: list[int]) -> int:
    """Length of the longest end of ``units`` that is a beginning of ``text``."""
    length = 0
    for unit in units[len(units) - min(len(units), len(text)) :]:
        while length and (length == len(text) or unit != text[length]):
            length = failure[length - 1]
        length += bool(text) and unit == text[length]
    return length
