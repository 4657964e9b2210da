r"""A grammar as it stands inside a JSON string: the same rules, each text spelt as JSON spells it.

For grammars that are not regular. The grammar engine's lexer takes the longest terminal and does not go back, and all escapes
begin alike: were ``\n`` part of a terminal of white space, no ``\"`` could follow it. So a terminal ends where an escape is
possible, and an escaped character is a terminal of its own; what a terminal was is a rule then. Only characters that JSON
must escape are escaped.

What is taken is always derived by the grammar; where its terminals overlap, not all that it derives is taken.
"""

from __future__ import annotations

from typing import Final

from interlock.constraints.lark.syntax import (
    Atom,
    Choice,
    Expression,
    LarkError,
    LarkGrammar,
    Loop,
    Ref,
    Seq,
    is_terminal,
    parse,
)
from interlock.constraints.schema.text import chars, ecma, lang
from interlock.constraints.schema.text.chars import Ranges
from interlock.constraints.schema.text.derive import is_empty
from interlock.constraints.schema.text.ecma_syntax import PatternError
from interlock.constraints.schema.text.emit import terminal
from interlock.constraints.schema.text.json_spelling import JsonSpelling
from interlock.constraints.schema.text.nodes import Alt, Cat, Chars, Lang, Repeat, Words
from interlock.constraints.shapes import times

_NOTHING: Final = '""'
_RAW: Final = chars.subtract(chars.from_ranges([(0x20, chars.MAX)]), chars.of('"\\\x7f'))


def quoted(source: str) -> str:
    """Lark for llguidance whose texts are the inner of JSON strings. Raises ``LarkError``."""
    return _Writer(parse(source)).lark()


class _InsideQuotes:
    opening = closing = ""

    def chars(self, ranges: Ranges) -> str:
        return JsonSpelling(escapes=False).chars(ranges)


class _Writer:
    def __init__(self, grammar: LarkGrammar) -> None:
        self._grammar = grammar
        self._lines: list[str] = []
        self._names = {name: f"d{at}" for at, name in enumerate(grammar.definitions)}
        self._lexemes: dict[Lang, str] = {}
        self._atoms: dict[str, str] = {}
        self._line = 1

    def lark(self) -> str:
        skip = "skip" if self._grammar.ignored else _NOTHING
        self._lines.append(f"start: {self._names['start']} {skip}")
        for name, definition in self._grammar.definitions.items():
            self._line = definition.line
            body = self._expression(definition.expression, lexical=is_terminal(name))
            self._lines.append(f"{self._names[name]}: {body}")
        if self._grammar.ignored:
            ignored = " | ".join(self._expression(item, lexical=True) for item in self._grammar.ignored)
            self._lines.append(f"skip: ({ignored})*")
        return "\n".join(self._lines) + "\n"

    def _expression(self, expression: Expression, *, lexical: bool) -> str:
        """lexical: inside a terminal, where nothing is ignored."""
        match expression:
            case Atom(pattern=pattern):
                return self._skipping(self._atom(pattern), lexical=lexical)
            case Ref(name=name):
                return self._skipping(self._names[name], lexical=lexical or not is_terminal(name))
            case Seq(items=items):
                return " ".join(f"({self._expression(item, lexical=lexical)})" for item in items) or _NOTHING
            case Choice(items=items):
                return " | ".join(self._expression(item, lexical=lexical) for item in items)
            case Loop(item=item, low=low, high=high):
                return _repeated(self._expression(item, lexical=lexical), low, high)

    def _skipping(self, symbol: str, *, lexical: bool) -> str:
        return f"skip {symbol}" if self._grammar.ignored and not lexical else symbol

    def _atom(self, pattern: str) -> str:
        if pattern not in self._atoms:
            try:
                found = ecma.search(f"^(?:{pattern})$")
            except PatternError as error:
                raise LarkError(self._line, str(error)) from None
            if is_empty(found):
                raise LarkError(self._line, "a terminal that no text matches")
            self._atoms[pattern] = f"a{len(self._atoms)}"
            self._lines.append(f"{self._atoms[pattern]}: {self._spelt(found)}")
        return self._atoms[pattern]

    # languages to lexemes and rules

    def _spelt(self, part: Lang) -> str:
        if part is lang.EMPTY:
            return _NOTHING
        if _is_raw(part):
            return self._lexeme(part)
        match part:
            case Words(words=words):
                return " | ".join(self._word(word) for word in sorted(words))
            case Chars(ranges=ranges):
                return " | ".join(self._lexeme(lang.one_of(some)) for some in _split(ranges) if some)
            case Cat(items=items):
                followed = [*items[1:], lang.EMPTY]
                return " ".join(
                    f"({self._followed(item, by)})" for item, by in zip(items, followed, strict=True)
                )
            case Alt(items=items):
                return " | ".join(sorted(map(self._spelt, items)))
            case Repeat():
                return self._followed(part, lang.EMPTY)
        raise LarkError(self._line, "a terminal is too complex to stand inside a call")

    def _followed(self, part: Lang, by: Lang) -> str:
        """``part`` in front of ``by``: raw characters that repeat are one lexeme unless ``by`` may go on like them."""
        match part:
            case Repeat(item=Chars(ranges=ranges), low=low, high=None) if low < 2:
                raw, escaped = _split(ranges)
                if not raw or chars.intersect(raw, _first(by)):
                    return _repeated(self._spelt(part.item), low, None)
                run = self._lexeme(lang.repeat(lang.one_of(raw), 1, None))
                return _repeated(f"{run} | {self._lexeme(lang.one_of(escaped))}", low, None)
            case Repeat(item=item, low=low, high=high):
                return _repeated(self._spelt(item), low, high)
        return self._spelt(part)

    def _word(self, word: str) -> str:
        pieces: list[str] = []
        for char in word:
            raw = chars.contains(_RAW, ord(char))
            if raw and pieces and chars.contains(_RAW, ord(pieces[-1][0])):
                pieces[-1] += char
            else:
                pieces.append(char)
        return " ".join(self._lexeme(lang.words([piece])) for piece in pieces) or _NOTHING

    def _lexeme(self, part: Lang) -> str:
        if part not in self._lexemes:
            self._lexemes[part] = f"T{len(self._lexemes)}"
            self._lines.append(f"{self._lexemes[part]}: {terminal(part, _InsideQuotes())}")
        return self._lexemes[part]


def _repeated(text: str, low: int, high: int | None) -> str:
    return _NOTHING if high == 0 else f"({text}){times(low, high)}"


def _split(ranges: Ranges) -> tuple[Ranges, Ranges]:
    return chars.intersect(ranges, _RAW), chars.subtract(ranges, _RAW)


def _is_raw(part: Lang) -> bool:
    """No text of it has a character that is escaped."""
    match part:
        case Words(words=words):
            return all(chars.contains(_RAW, ord(char)) for word in words for char in word)
        case Chars(ranges=ranges):
            return not chars.subtract(ranges, _RAW)
        case Cat(items=items) | Alt(items=items):
            return all(map(_is_raw, items))
        case Repeat(item=item):
            return _is_raw(item)
    return False


def _first(part: Lang) -> Ranges:
    """Characters that may begin a text of ``part``, or more."""
    match part:
        case Words(words=words):
            return chars.of("".join({word[0] for word in words if word}))
        case Chars(ranges=ranges):
            return ranges
    return chars.ALL
