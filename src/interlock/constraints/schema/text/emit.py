"""Languages to llguidance terminals, over the text as an argument syntax spells it.

``q`` spells a language character by character, and ``q(A∧B) = q(A) & q(B)``, ``q(¬A) = q(any) & ~q(A)``
hold because every class is spelled with all its spellings. The quotes stand inside each operand of ``&``
and ``~``: only so can the engine see that ordinary text is allowed, and answer masks from its slices.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final, Protocol

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.alphabet import narrowed
from interlock.constraints.schema.text.chars import Ranges
from interlock.constraints.schema.text.lang import ANY
from interlock.constraints.schema.text.nodes import Alt, And, Cat, Chars, Lang, Not, Repeat, Words

_MAX_ESCAPED_RANGES = 1000
_MAX_ESCAPED_COUNT = 8
_SMALL = 400  # languages whose text is kept: several keys are told apart by the same patterns
_PLAIN = frozenset(string.ascii_letters + string.digits)
_META = set("\\^$.|?*+()[]{}/\"'&~-#")


class Spelling(Protocol):
    """How text is written: what stands around it, and each character in between (regex text)."""

    @property
    def opening(self) -> str: ...

    @property
    def closing(self) -> str: ...

    def chars(self, ranges: Ranges) -> str:
        """A regex of every spelling of every character in ``ranges``, as one group."""
        ...

    def __hash__(self) -> int: ...


quote: Final = encode_basestring
"""``json.dumps`` of a text, without its cost."""


def literal(text: str) -> str:
    """Regex for exactly ``text``."""
    return "".join(_char(ord(char)) for char in text)


def text_literal(text: str) -> str:
    """Lark string for exactly ``text``, free of the signs that the writer of rules looks for."""
    quoted = quote(text)
    for sign in "@%|":
        if sign in text:
            quoted = quoted.replace(sign, f"\\u{ord(sign):04x}")
    return quoted


def _char(code: int) -> str:
    char = chr(code)
    if char in _META or (code < 0x20 or code == 0x7F):
        return f"\\x{code:02x}" if code < 0x20 or code == 0x7F or char in "/\"'&~#-" else f"\\{char}"
    return char if code < 0x7F or char.isalnum() else f"\\x{{{code:x}}}"


def char_class(ranges: Ranges) -> str:
    """Regex class of raw characters."""
    parts = []
    for low, high in ranges:
        parts.append(_char(low) if low == high else f"{_char(low)}-{_char(high)}")
    return f"[{''.join(parts)}]"


def terminal(lang: Lang, spelling: Spelling) -> str:
    """A Lark terminal expression for ``lang``, quotes included. ``lang`` must not be empty."""
    return _Emitter(spelling).expression(lang, opening=True, closing=True)


@lru_cache(maxsize=4096)
def is_spellable_with_escapes(lang: Lang) -> bool:
    """Classes of many scattered ranges have no short regex of spellings with escapes, and where more than characters
    are counted, they multiply the states of the engine."""
    match lang:
        case Words():
            return True
        case Chars(ranges=ranges):
            return sum(high > 0x7F for _, high in ranges) <= _MAX_ESCAPED_RANGES
        case Repeat(item=item, low=low, high=high):
            counts = max(low, high or 0) > _MAX_ESCAPED_COUNT and not isinstance(item, Chars | Words)
            return not counts and is_spellable_with_escapes(item)
        case Cat(items=items) | Alt(items=items) | And(items=items):
            return all(map(is_spellable_with_escapes, items))
        case Not(item=item):
            return is_spellable_with_escapes(item)
    return True


@dataclass(slots=True)
class _Emitter:
    spelling: Spelling
    _classes: dict[Ranges, str] = field(default_factory=dict)

    def expression(self, lang: Lang, *, opening: bool, closing: bool) -> str:
        """A Lark expression, safe as an operand of ``&``."""
        if lang.plain:
            return self.regex(lang, opening=opening, closing=closing)
        match lang:
            case And(items=items):
                return self.conjunction(items, opening=opening, closing=closing)
            case Not(item=item):
                everything = self.regex(ANY, opening=opening, closing=closing)
                return f"({everything} & ~({self.expression(item, opening=opening, closing=closing)}))"
            case Alt(items=items):
                plain = [item for item in items if item.plain]
                parts = [self.expression(i, opening=opening, closing=closing) for i in items if not i.plain]
                if plain:
                    body = Alt(frozenset(plain)) if len(plain) > 1 else plain[0]
                    parts.append(self.regex(body, opening=opening, closing=closing))
                return f"({' | '.join(sorted(parts))})"
            case Cat(items=items):
                return self.sequence(items, opening=opening, closing=closing)
            case Repeat(item=item, low=low, high=high):
                inner = self.expression(item, opening=False, closing=False)
                bound = f"{{{low},{'' if high is None else high}}}"
                middle = f"({inner}){bound}"
                before = [f"/{self.spelling.opening}/"] if opening and self.spelling.opening else []
                after = [f"/{self.spelling.closing}/"] if closing and self.spelling.closing else []
                return f"({' '.join([*before, middle, *after])})"
        raise AssertionError(lang)

    def conjunction(self, items: frozenset[Lang], *, opening: bool, closing: bool) -> str:
        operands = [item for item in narrowed(items) if item is not ANY]
        positive = sorted(
            self.expression(item, opening=opening, closing=closing)
            for item in operands
            if not isinstance(item, Not)
        )
        if not positive:
            positive = [self.regex(ANY, opening=opening, closing=closing)]
        negative = sorted(
            self.expression(item.item, opening=opening, closing=closing)
            for item in operands
            if isinstance(item, Not)
        )
        if len(positive) == 1 and not negative:
            return positive[0]
        # one complement: the engine's slices know "this but not that", and no more operands
        without = [f"~({' | '.join(negative)})"] if negative else []
        return f"({' & '.join([*positive, *without])})"

    def sequence(self, items: tuple[Lang, ...], *, opening: bool, closing: bool) -> str:
        """Runs of plain items become one regex; the closing quote goes into the last part."""
        runs: list[list[Lang]] = []
        for item in items:
            if item.plain and runs and runs[-1][-1].plain:
                runs[-1].append(item)
            else:
                runs.append([item])
        parts = []
        for index, run in enumerate(runs):
            first, last = opening and index == 0, closing and index == len(runs) - 1
            body = Cat(tuple(run)) if len(run) > 1 else run[0]
            parts.append(self.expression(body, opening=first, closing=last))
        return f"({' '.join(parts)})"

    def regex(self, lang: Lang, *, opening: bool, closing: bool) -> str:
        if lang.size < _SMALL and not isinstance(lang, Words):
            return _small_regex(self.spelling, lang, opening, closing)
        return self.new_regex(lang, opening=opening, closing=closing)

    def new_regex(self, lang: Lang, *, opening: bool, closing: bool) -> str:
        before = self.spelling.opening if opening else ""
        after = self.spelling.closing if closing else ""
        body = self.body(lang)
        if isinstance(lang, (Alt, Words)) and (before or after):
            body = f"({body})"
        return f"/{before}{body}{after}/"

    def body(self, lang: Lang) -> str:
        match lang:
            case Words(words=words):
                return self.words(words)
            case Chars(ranges=ranges):
                return self.chars(ranges)
            case Cat(items=items):
                return "".join(self.group(item) for item in items)
            case Alt(items=items):
                return "|".join(sorted(self.body(item) for item in items))
            case Repeat(item=item, low=low, high=high):
                return f"{self.group(item, repeated=True)}{_bounds(low, high)}"
        raise AssertionError(lang)

    def group(self, lang: Lang, *, repeated: bool = False) -> str:
        body = self.body(lang)
        if isinstance(lang, Chars):
            return body
        single = isinstance(lang, Words) and len(lang.words) == 1 and (not repeated)
        return body if single or (isinstance(lang, (Repeat, Cat)) and not repeated) else f"({body})"

    def words(self, words: frozenset[str]) -> str:
        return "|".join(self.word(word) for word in sorted(words))

    def word(self, word: str) -> str:
        if word.isascii() and word.isalnum():
            return word
        return "".join([char if char in _PLAIN else self.chars(((ord(char), ord(char)),)) for char in word])

    def chars(self, ranges: Ranges) -> str:
        known = self._classes.get(ranges)
        if known is None:
            known = self._classes[ranges] = self.spelling.chars(ranges)
        return known


@lru_cache(maxsize=512)
def _small_regex(spelling: Spelling, lang: Lang, opening: bool, closing: bool) -> str:
    return _Emitter(spelling).new_regex(lang, opening=opening, closing=closing)


def _bounds(low: int, high: int | None) -> str:
    if high is None:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    if (low, high) == (0, 1):
        return "?"
    return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def empty_class() -> str:
    """A regex that nothing matches."""
    return char_class(chars.complement(chars.ALL)) or "[^\\s\\S]"
