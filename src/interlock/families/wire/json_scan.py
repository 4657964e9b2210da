"""A JSON value, checked as it arrives.

The scanner is a table of states with a stack of its own: no recursion, no second look at a character, any split of
the text gives the same result. It keeps nothing of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

_SPACE = " \t\n\r"
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_DIGITS = "0123456789"
_LITERALS = ("true", "false", "null")


class JsonError(Exception):
    """The text cannot become JSON. ``at``: where in the fed text."""

    def __init__(self, at: int) -> None:
        super().__init__(f"not JSON at character {at}")
        self.at = at


class _State(dict[str, "_State"]):
    """The next state for each character that may come.

    brackets: those that may come as well; they change the stack. after: the state behind a value that begins here.
    in_string: any ordinary character may come as well and changes nothing. is_whole: the value is, unless one of the
    characters follows.
    """

    __slots__ = ("after", "brackets", "in_string", "is_whole")

    def __init__(self, brackets: str = "", *, in_string: bool = False, is_whole: bool = False) -> None:
        super().__init__()
        self.brackets = brackets
        self.after: _State | None = None
        self.in_string = in_string
        self.is_whole = is_whole

    def on(self, chars: Iterable[str], then: _State) -> Self:
        self.update(dict.fromkeys(chars, then))
        return self


class JsonScanner:
    """One JSON value, without white space around it. ``done`` when its last character was seen; a number on
    its own is done when a character after it was, which is not consumed."""

    __slots__ = ("_stack", "_state", "done")

    def __init__(self) -> None:
        self.done = False
        self._stack: list[_State] = []  # what follows each object and list that is open
        self._state = _START

    def feed(self, text: str, pos: int) -> int:
        """Read from ``pos``; returns where reading ended: the end of ``text``, or of the value.

        Raises ``JsonError``; the scanner is of no use then.
        """
        state, size = self._state, len(text)
        while pos < size:
            following = state.get(text[pos])
            if following is not None:
                state = following
                pos += 1
            elif state.in_string:
                plain = _PLAIN.match(text, pos)
                if plain is None:
                    raise JsonError(pos)
                pos = plain.end()
            elif text[pos] in state.brackets:
                state = self._bracket(text[pos], state)
                pos += 1
            elif state.is_whole:
                state = _END
                break
            else:
                raise JsonError(pos)
        self._state = state
        self.done = state is _END
        return pos

    def _bracket(self, char: str, state: _State) -> _State:
        if char in "}]":
            return self._stack.pop()
        assert state.after is not None
        self._stack.append(state.after)
        return _FIRST_KEY if char == "{" else _FIRST_ITEM


def skip_space(text: str, pos: int) -> int:
    """The first character at or after ``pos`` that is no white space of JSON, or the end."""
    size = len(text)
    while pos < size and text[pos] in _SPACE:  # mostly none or one: a pattern takes longer
        pos += 1
    return pos


# The table.


def _spaced(brackets: str = "") -> _State:
    """A state in which white space may come."""
    state = _State(brackets)
    return state.on(_SPACE, state)


def _add_value(state: _State, after: _State) -> _State:
    """Let a value begin in ``state``."""
    state.after = after
    state.brackets += "{["
    _add_number(state, after)
    for word in _LITERALS:
        then = after
        for char in reversed(word[1:]):
            then = _State().on(char, then)
        state.on(word[0], then)
    return state.on('"', _string(after))


def _add_number(state: _State, after: _State) -> None:
    zero, whole, fraction, exponent = ends = [_State(after.brackets, is_whole=after.is_whole) for _ in range(4)]
    for end in ends:
        end.update(after)
    power = _State().on(_DIGITS, exponent).on("+-", _State().on(_DIGITS, exponent))
    point = _State().on(_DIGITS, fraction)
    zero.on(".", point).on("eE", power)
    whole.on(_DIGITS, whole).on(".", point).on("eE", power)
    fraction.on(_DIGITS, fraction).on("eE", power)
    exponent.on(_DIGITS, exponent)
    for sign in (state, _State()):
        sign.on("0", zero).on(_DIGITS[1:], whole)
    state.on("-", sign)


def _string(after: _State) -> _State:
    """The state behind an opening quote."""
    string = _State(in_string=True)
    digits = string
    for _ in range(4):
        digits = _State().on("0123456789abcdefABCDEF", digits)
    escape = _State().on('"\\/bfnrt', string).on("u", digits)
    return string.on('"', after).on("\\", escape)


def _first_key() -> _State:
    """The state behind the brace that opens an object."""
    after, value = _spaced("}"), _spaced()
    key = _string(_spaced().on(":", value))
    after.on(",", _spaced().on('"', key))
    _add_value(value, after)
    return _spaced("}").on('"', key)


def _first_item() -> _State:
    """The state behind the bracket that opens a list."""
    after, item = _spaced("]"), _spaced()
    _add_value(item, after.on(",", item))
    return _add_value(_spaced("]"), after)


_END = _State(is_whole=True)
_START = _add_value(_State(), _END)
_FIRST_KEY = _first_key()
_FIRST_ITEM = _first_item()
