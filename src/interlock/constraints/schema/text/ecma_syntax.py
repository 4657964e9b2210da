r"""ECMA 262 regular expressions: text to syntax tree.

Unicode mode, plus what Annex B tolerates where the meaning is not in doubt (a lone ``{`` or ``]``, needless
escapes of punctuation). Escapes that other dialects give another meaning (``\A``, ``\Z``...) are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.chars import Ranges


class PatternError(ValueError):
    """The pattern is malformed, or says something that no regular language can hold."""


@dataclass(frozen=True, slots=True)
class Class:
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Seq:
    items: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    items: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    item: Syntax
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Assertion:
    kind: Literal["start", "end", "boundary", "inside"]


@dataclass(frozen=True, slots=True)
class Look:
    """Look-ahead."""

    item: Syntax
    negative: bool


Syntax = Class | Seq | Choice | Loop | Assertion | Look

_CONTROL = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CLASSES = {
    "d": chars.DIGIT,
    "D": chars.complement(chars.DIGIT),
    "w": chars.WORD,
    "W": chars.NOT_WORD,
    "s": chars.SPACE,
    "S": chars.complement(chars.SPACE),
}
MAX_DEPTH = 100


def parse(pattern: str) -> Syntax:
    """Raises ``PatternError``."""
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def parse(self) -> Syntax:
        out = self.choice()
        if self.at < len(self.text):
            raise PatternError(f"unmatched ')' at {self.at}")
        return out

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if self.peek(text):
            self.at += len(text)
            return True
        return False

    def choice(self) -> Syntax:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise PatternError(f"groups are nested deeper than {MAX_DEPTH} levels")
        items = [self.sequence()]
        while self.take("|"):
            items.append(self.sequence())
        self.depth -= 1
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def sequence(self) -> Syntax:
        items: list[Syntax] = []
        while self.at < len(self.text) and not self.peek("|") and not self.peek(")"):
            item = self.atom()
            items.append(self.quantified(item))
        return items[0] if len(items) == 1 else Seq(tuple(items))

    def quantified(self, item: Syntax) -> Syntax:
        while True:
            bounds = self.quantifier()
            if bounds is None:
                return item
            if isinstance(item, Assertion):
                raise PatternError(f"nothing to repeat at {self.at}")
            low, high = bounds
            if high is not None and low > high:
                raise PatternError(f"quantifier bounds out of order at {self.at}")
            if not self.take("?") and self.peek("+"):
                raise PatternError("possessive quantifiers are not ECMA 262")
            item = Loop(item, low, high)
            if self.at < len(self.text) and self.text[self.at] in "*+?":
                raise PatternError(f"nothing to repeat at {self.at}")

    def quantifier(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        if not self.peek("{"):
            return None
        end = self.text.find("}", self.at)
        body = self.text[self.at + 1 : end] if end > 0 else ""
        low, comma, high = body.partition(",")
        if not _is_number(low) or not (high == "" or _is_number(high)):
            if low == "" and _is_number(high):
                raise PatternError("'{,n}' means different things in different dialects; write '{0,n}'")
            return None
        self.at = end + 1
        return int(low), int(high) if high else (None if comma else int(low))

    def atom(self) -> Syntax:
        char = self.text[self.at]
        if char == "(":
            return self.group()
        if char == "[":
            return Class(self.char_class())
        if char in "*+?":
            raise PatternError(f"nothing to repeat at {self.at}")
        self.at += 1
        if char == ".":
            return Class(chars.DOT)
        if char == "^":
            return Assertion("start")
        if char == "$":
            return Assertion("end")
        if char == "\\":
            if self.take("b"):
                return Assertion("boundary")
            if self.take("B"):
                return Assertion("inside")
            return Class(self.escape(in_class=False))
        return Class(chars.of(char))

    def group(self) -> Syntax:
        self.at += 1
        look: bool | None = None
        if self.take("?"):
            if self.take("="):
                look = False
            elif self.take("!"):
                look = True
            elif self.peek("<=") or self.peek("<!"):
                raise PatternError("look-behind is not supported")
            elif self.take("<") or self.take("P<"):
                end = self.text.find(">", self.at)
                if end < 0 or not self.text[self.at : end].isidentifier():
                    raise PatternError(f"invalid group name at {self.at}")
                self.at = end + 1
            elif not self.take(":"):
                raise PatternError(f"group '(?{self.text[self.at : self.at + 1]}' is not ECMA 262")
        item = self.choice()
        if not self.take(")"):
            raise PatternError("unterminated group")
        return item if look is None else Look(item, look)

    def escape(self, *, in_class: bool) -> Ranges:
        """After the backslash."""
        if self.at >= len(self.text):
            raise PatternError("pattern ends in a backslash")
        char = self.text[self.at]
        self.at += 1
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROL:
            return chars.of(_CONTROL[char])
        if char in "pP":
            return self.property(negative=char == "P")
        if char == "u":
            return chars.from_ranges([(code := self.unicode_escape(), code)])
        if char == "x":
            return chars.of(chr(self.hex_digits(2)))
        if (
            char == "c"
            and self.at < len(self.text)
            and self.text[self.at].isascii()
            and self.text[self.at].isalpha()
        ):
            self.at += 1
            return chars.of(chr(ord(self.text[self.at - 1]) % 32))
        if char == "0" and not (self.at < len(self.text) and self.text[self.at].isdigit()):
            return chars.of("\0")
        if char == "b" and in_class:
            return chars.of("\b")
        if char.isdigit() or char == "k":
            raise PatternError("back-references are not supported: their language is not regular")
        if char.isascii() and char.isalnum():
            raise PatternError(f"escape '\\{char}' is not ECMA 262")
        return chars.of(char)

    def property(self, *, negative: bool) -> Ranges:
        end = self.text.find("}", self.at)
        if not self.take("{") or end < 0:
            raise PatternError("'\\p' needs a property name in braces")
        name = self.text[self.at : end]
        self.at = end + 1
        ranges = chars.unicode_property(name)
        if ranges is None:
            raise PatternError(f"Unicode property '{name}' is not supported")
        return chars.complement(ranges) if negative else ranges

    def unicode_escape(self) -> int:
        if self.take("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at : end] if end >= 0 else ""
            if not _is_hex(digits) or int(digits, 16) > chars.MAX:
                raise PatternError("invalid '\\u{...}' escape")
            self.at = end + 1
            code = int(digits, 16)
        else:
            code = self.hex_digits(4)
            if 0xD800 <= code < 0xDC00 and self.take("\\u"):
                low = self.hex_digits(4)
                if not 0xDC00 <= low <= 0xDFFF:
                    raise PatternError("'\\u' escape is half of a surrogate pair")
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        return code

    def hex_digits(self, count: int) -> int:
        digits = self.text[self.at : self.at + count]
        if len(digits) != count or not _is_hex(digits):
            raise PatternError(f"invalid hexadecimal escape at {self.at}")
        self.at += count
        return int(digits, 16)

    def char_class(self) -> Ranges:
        self.at += 1
        negative = self.take("^")
        ranges: list[tuple[int, int]] = []
        while not self.take("]"):
            if self.at >= len(self.text):
                raise PatternError("unterminated character class")
            low = self.class_atom()
            if self.peek("-") and not self.peek("-]") and self.at + 1 < len(self.text):
                mark = self.at
                self.at += 1
                high = self.class_atom()
                if _single(low) and _single(high):
                    if low[0][0] > high[0][0]:
                        raise PatternError("character class range out of order")
                    ranges.append((low[0][0], high[0][0]))
                    continue
                self.at = mark  # '[\\w-.]': the dash stands for itself
            ranges.extend(low)
        found = chars.from_ranges(ranges)
        return chars.complement(found) if negative else found

    def class_atom(self) -> tuple[tuple[int, int], ...]:
        char = self.text[self.at]
        self.at += 1
        if char == "\\":
            if self.peek("u"):
                self.at += 1
                code = self.unicode_escape()
                return ((code, code),)  # may be a surrogate as the end of a range
            return self.escape(in_class=True)
        return ((ord(char), ord(char)),)


def _single(ranges: tuple[tuple[int, int], ...]) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _is_hex(text: str) -> bool:
    return bool(text) and len(text) < 9 and all(char in "0123456789abcdefABCDEF" for char in text)
