"""Follow the arguments of a call in the syntax of its family: what differs from JSON."""

from __future__ import annotations

import re
from typing import Final

from interlock.constraints.schema.guards.notation import BareKeys, NestedTags, Python, Tags
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.guards.scan import Mode, Scan, ScanError, State
from interlock.constraints.schema.guards.values import Canonical, array, number, object_

_NO_KEY: Final = frozenset(b":,{}[]()'\"<>&/ \n")
_NUMBER_BEGUN: Final = re.compile(rb"[-+.0-9eE]+ ?")
_WORDS: Final = {b"null": "null", b"true": "boolean", b"false": "boolean"}


class BareKeyScan(Scan):
    """``{k:<|"|>text<|"|>,n:1}``."""

    def __init__(self, plan: GuardPlan, state: State, data: bytes, notation: BareKeys) -> None:
        super().__init__(plan, state, data)
        self._mark = notation.quote
        self._quote = self._mark[0]

    def _skip_plain(self) -> None:
        if self._mode == "key string":
            self._skip_to(b":", self._begin)
            return
        if self._skip_to(self._mark, self._begin + len(self._mark)):
            self._mode = self._scalar_completed(self._at)

    def _string(self, text: bytes) -> Canonical:
        return text

    def _key(self, byte: int) -> Mode:
        if byte in _NO_KEY:
            raise ScanError
        self._begin = self._at
        return "key string"

    def _skip_to(self, end: bytes, begin: int) -> bool:
        """Over what does not end the open text; the key is taken where that is one."""
        found = self._text.find(end, begin)
        self._at = len(self._text) if found < 0 else found + len(end)
        if found >= 0 and self._mode == "key string":
            self._name(self._text[self._begin : found].decode())
            self._mode = "value"
        return found >= 0


class PythonScan(Scan):
    """``a=1, b="x", c={"k": [True, None]}``; what follows tells that there is no more."""

    def __init__(self, plan: GuardPlan, state: State, data: bytes, notation: Python) -> None:
        super().__init__(plan, state, data)
        self._quote = notation.quote[0]

    def _skip_plain(self) -> None:
        if self._mode != "key string" or len(self._frames) > 1:
            super()._skip_plain()
            return
        found = self._text.find(b"=", self._begin)
        self._at = len(self._text) if found < 0 else found + 1
        if found >= 0:
            self._name(self._text[self._begin : found].decode())
            self._mode = "value"

    def _string(self, text: bytes) -> Canonical:
        return super()._string(text) if self._quote == ord('"') else text

    def _between(self, mode: Mode, byte: int) -> Mode:
        if mode == "start":
            self._opened(is_array=False)
            mode = "key"
        if len(self._frames) > 1 or (mode == "after" and byte == ord(",")):
            return super()._between(mode, byte)
        if mode == "key" and byte not in _NO_KEY:
            self._begin = self._at
            return "key string"
        raise ScanError

    def _key_name(self, text: bytes) -> str:
        if self._quote != ord('"'):
            text = b'"' + text[1:-1].replace(b'"', b'\\"').replace(b"\\'", b"'") + b'"'
        return super()._key_name(text)


class TagScan(Scan):
    """Parameters between tags; an object or an array in one is JSON."""

    _open_modes = Scan._open_modes | {"between", "tag", "end tag"}

    def __init__(self, plan: GuardPlan, state: State, data: bytes, notation: Tags) -> None:
        super().__init__(plan, state, data)
        self._tags = notation

    @property
    def _is_outermost(self) -> bool:
        return len(self._frames) == 1

    def _skips_space(self, mode: Mode) -> bool:
        """What separates parameters may begin with it."""
        return super()._skips_space(mode) and not (mode == "after" and self._is_outermost)

    def _skip_plain(self) -> None:
        if not self._is_outermost:
            super()._skip_plain()
        elif self._mode == "string":
            self._skip_raw()
        else:
            self._skip_key()

    def _skip_raw(self) -> None:
        end = self._tags.value_close
        found = self._text.find(end, self._begin)
        self._at = len(self._text) if found < 0 else found + len(end)
        if found >= 0:
            self._mode = "after"

    def _skip_key(self) -> None:
        end = self._tags.key_end
        found = self._text.find(end, self._begin)
        self._at = len(self._text) if found < 0 else found + len(end)
        if found >= 0:
            self._name(self._text[self._begin : found].decode())
            self._begin = self._at
            self._mode = "tag" if self._tags.text_words else "value"

    def _between(self, mode: Mode, byte: int) -> Mode:
        if mode == "start":
            self._opened(is_array=False)
        if not self._is_outermost:
            return super()._between(mode, byte)
        if mode in ("start", "after"):
            self._begin = self._at
            mode = "between"
        text = self._text[self._begin : self._at + 1]
        if mode == "tag":
            return self._typed(text)
        if mode == "end tag":
            return self._fixed(text.lstrip(b" "), self._tags.value_close, mode, "after")
        wanted = fixed_text(self._tags, is_first=not self._frames[-1].key)
        return self._fixed(text, wanted, mode, "key string")

    def _fixed(self, text: bytes, wanted: bytes, mode: Mode, behind: Mode) -> Mode:
        """What can only be ``wanted``."""
        if not wanted.startswith(text):
            raise ScanError
        if text != wanted:
            return mode
        self._begin = self._at + 1
        return behind

    def _typed(self, text: bytes) -> Mode:
        """The word that says how the value is written."""
        if not text.endswith(self._tags.key_close):
            return "tag"
        self._begin = self._at + 1
        is_text = text[: -len(self._tags.key_close)] in self._tags.text_words
        return "string" if is_text else "value"

    def _value(self, byte: int) -> Mode:
        if not self._is_outermost:
            return super()._value(byte)
        kinds = self._plan.kinds(self._nodes())
        if (byte == ord("[") and "array" in kinds) or (byte == ord("{") and "object" in kinds):
            return self._opened(is_array=byte == ord("["))
        self._begin = self._at
        self._at -= 1  # it may belong to what ends the text
        return "string"

    def _completed(self, value: Canonical) -> Mode:
        mode = super()._completed(value)
        if self._is_outermost:
            self._begin = self._at + 1
            return "end tag"
        return mode


def fixed_text(tags: Tags, *, is_first: bool) -> bytes:
    """What stands in front of a key."""
    return tags.key_open if is_first else tags.separator + tags.key_open


class NestedTagScan(Scan):
    """``mark<key>value mark</key>``, to any depth."""

    _open_modes = Scan._open_modes | {"value", "tag", "leave"}
    _skipped_modes = frozenset(("string", "scalar"))

    def __init__(self, plan: GuardPlan, state: State, data: bytes, notation: NestedTags) -> None:
        super().__init__(plan, state, data)
        self._tags = notation

    def _skip_plain(self) -> None:
        """Over raw text, up to what ends it."""
        end = self._tags.leaving
        found = self._text.find(end, self._begin)
        self._at = len(self._text) if found < 0 else found + len(end)
        if found >= 0:
            self._mode = self._raw_completed(self._text[self._begin : self._at])
        else:
            self._mode = self._raw_mode(self._text[self._begin :])

    def _raw_mode(self, text: bytes) -> Mode:
        """How a value that is no tag has begun."""
        is_number = _NUMBER_BEGUN.fullmatch(self._tags.raw(text)) and "number" in self._plan.kinds(
            self._nodes()
        )
        return "scalar" if is_number else "string"

    def _between(self, mode: Mode, byte: int) -> Mode:
        if mode == "start":
            self._opened(is_array=False)
        if mode in ("start", "after"):
            self._begin = self._at
            mode = "tag"
        if mode == "leave":
            return "after" if byte == ord(">") else mode
        return self._tag(self._text[self._begin : self._at + 1], mode)

    def _value(self, byte: int) -> Mode:
        return self._tag(self._text[self._begin : self._at] + bytes((byte,)), "value")

    def _tag(self, text: bytes, mode: Mode) -> Mode:
        """A tag so far, between others or in place of a value."""
        bracket = self._tags.mark + b"<"
        if not bracket.startswith(text[: len(bracket)]):
            if mode == "value":
                return self._raw_mode(text)
            raise ScanError
        if text == self._tags.leaving:
            return self._left(mode)
        if len(text) <= len(bracket) or not text.endswith(b">"):
            return mode
        return self._entered(text[len(bracket) : -1], mode)

    def _left(self, mode: Mode) -> Mode:
        if mode == "value":
            return self._raw_completed(self._tags.leaving)
        if len(self._frames) == 1:
            raise ScanError
        self._begin = self._at + 1
        self._closed()
        return "leave"

    def _entered(self, name: bytes, mode: Mode) -> Mode:
        if mode == "value":
            is_array = name == self._tags.item and "array" in self._plan.kinds(self._nodes())
            self._opened(is_array=is_array)
        elif self._frames[-1].is_array:
            self._next(self._frames[-1])
        if not self._frames[-1].is_array:
            self._name(name.decode())
        self._begin = self._at + 1
        return "value"

    def _raw_completed(self, text: bytes) -> Mode:
        frame = self._frames[-1]
        value: Canonical = None
        if frame.kept or (frame.is_array and frame.checked):
            value = self._read(text)
        self._completed(value)
        self._begin = self._at + 1
        return "leave"

    def _read(self, text: bytes) -> Canonical:
        """The value of a text, which the types of its place decide."""
        kinds = self._plan.kinds(self._nodes())
        word = text[: -len(self._tags.leaving)].strip()
        if not word and "string" not in kinds and kinds & {"object", "array"}:
            return object_(()) if "object" in kinds else array(())
        if _WORDS.get(word) in kinds:
            return word.decode()
        try:
            return number(word.decode()) if "number" in kinds else text
        except ValueError:
            return text
