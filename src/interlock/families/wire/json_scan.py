"""A JSON value, checked as it arrives.

The scanner is a plain state machine with its own stack: no recursion, no second look at a character, any split
of the text gives the same result. It keeps nothing of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_SPACE = " \t\n\r"
_NOT_SPACE = re.compile(r"[^ \t\n\r]")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_HEX = frozenset("0123456789abcdefABCDEF")
_LITERALS = {"t": "rue", "f": "alse", "n": "ull"}

# Number automaton: state -> character class -> state. "z" is 0, "d" is 1-9.
_NUMBER = {
    "-": {"z": "0", "d": "i"},
    "0": {".": ".", "e": "e"},
    "i": {"z": "i", "d": "i", ".": ".", "e": "e"},
    ".": {"z": "f", "d": "f"},
    "f": {"z": "f", "d": "f", "e": "e"},
    "e": {"z": "x", "d": "x", "+": "s", "-": "s"},
    "s": {"z": "x", "d": "x"},
    "x": {"z": "x", "d": "x"},
}
_NUMBER_CLASS = {"0": "z", **dict.fromkeys("123456789", "d"), ".": ".", "e": "e", "E": "e", "+": "+", "-": "-"}
_NUMBER_START = {"-": "-", "0": "0", **dict.fromkeys("123456789", "i")}
_NUMBER_END = frozenset("0ifx")

_Step = Callable[[str, int], int]


class JsonError(Exception):
    """The text cannot become JSON. ``at``: where in the fed text."""

    def __init__(self, at: int) -> None:
        super().__init__(f"not JSON at character {at}")
        self.at = at


class JsonScanner:
    """One JSON value, without white space around it. ``done`` when its last character was seen; a number on
    its own is done when a character after it was, which is not consumed."""

    __slots__ = ("_number", "_rest", "_stack", "_step", "done")

    def __init__(self) -> None:
        self.done = False
        self._stack: list[str] = []
        self._step: _Step = self._value
        self._rest = ""  # of a literal; of a \u escape, one "h" a digit
        self._number = ""

    def feed(self, text: str, pos: int) -> int:
        """Read from ``pos``; returns where reading ended: the end of ``text``, or of the value.

        Raises ``JsonError``; the scanner is of no use then.
        """
        while pos < len(text) and not self.done:
            pos = self._step(text, pos)
        return pos

    # one method a state; each reads at least one character or changes the state

    def _value(self, text: str, pos: int) -> int:
        char = text[pos]
        if char == '"':
            self._step = self._string
        elif char in "{[":
            self._stack.append("}" if char == "{" else "]")
            self._step = self._first_key if char == "{" else self._first_item
        elif char in _NUMBER_START:
            self._number = _NUMBER_START[char]
            self._step = self._in_number
        elif char in _LITERALS:
            self._rest = _LITERALS[char]
            self._step = self._literal
        else:
            raise JsonError(pos)
        return pos + 1

    def _item(self, text: str, pos: int) -> int:
        return pos if (pos := skip_space(text, pos)) == len(text) else self._value(text, pos)

    def _first_item(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos < len(text) and text[pos] == "]":
            return self._close(pos)
        return self._item(text, pos)

    def _key(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] != '"':
            raise JsonError(pos)
        self._step = self._key_string
        return pos + 1

    def _first_key(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos < len(text) and text[pos] == "}":
            return self._close(pos)
        return self._key(text, pos)

    def _colon(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] != ":":
            raise JsonError(pos)
        self._step = self._item
        return pos + 1

    def _after_value(self, text: str, pos: int) -> int:
        pos = skip_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] == ",":
            self._step = self._key if self._stack[-1] == "}" else self._item
            return pos + 1
        if text[pos] == self._stack[-1]:
            return self._close(pos)
        raise JsonError(pos)

    def _close(self, pos: int) -> int:
        self._stack.pop()
        self._end_value()
        return pos + 1

    def _end_value(self) -> None:
        self._step = self._after_value
        self.done = not self._stack

    def _string(self, text: str, pos: int) -> int:
        return self._quoted(text, pos, self._string_escape, None)

    def _key_string(self, text: str, pos: int) -> int:
        return self._quoted(text, pos, self._key_escape, self._colon)

    def _quoted(self, text: str, pos: int, escape: _Step, then: _Step | None) -> int:
        match = _PLAIN.match(text, pos)
        pos = match.end() if match else pos
        if pos == len(text):
            return pos
        if text[pos] == "\\":
            self._step = escape
        elif text[pos] != '"':
            raise JsonError(pos)
        elif then is not None:
            self._step = then
        else:
            self._end_value()
        return pos + 1

    def _string_escape(self, text: str, pos: int) -> int:
        return self._escape(text, pos, self._string, self._string_hex)

    def _key_escape(self, text: str, pos: int) -> int:
        return self._escape(text, pos, self._key_string, self._key_hex)

    def _escape(self, text: str, pos: int, then: _Step, digits: _Step) -> int:
        if text[pos] == "u":
            self._rest = "hhhh"
            self._step = digits
        elif text[pos] in '"\\/bfnrt':
            self._step = then
        else:
            raise JsonError(pos)
        return pos + 1

    def _string_hex(self, text: str, pos: int) -> int:
        return self._hex(text, pos, self._string)

    def _key_hex(self, text: str, pos: int) -> int:
        return self._hex(text, pos, self._key_string)

    def _hex(self, text: str, pos: int, then: _Step) -> int:
        if text[pos] not in _HEX:
            raise JsonError(pos)
        self._rest = self._rest[1:]
        if not self._rest:
            self._step = then
        return pos + 1

    def _literal(self, text: str, pos: int) -> int:
        if text[pos] != self._rest[0]:
            raise JsonError(pos)
        self._rest = self._rest[1:]
        if not self._rest:
            self._end_value()
        return pos + 1

    def _in_number(self, text: str, pos: int) -> int:
        while pos < len(text):
            step = _NUMBER[self._number].get(_NUMBER_CLASS.get(text[pos], ""))
            if step is None:
                if self._number not in _NUMBER_END:
                    raise JsonError(pos)
                self._end_value()
                return pos
            self._number = step
            pos += 1
        return pos


def skip_space(text: str, pos: int) -> int:
    """The first character at or after ``pos`` that is no white space of JSON, or the end."""
    match = _NOT_SPACE.search(text, pos)
    return match.start() if match else len(text)
