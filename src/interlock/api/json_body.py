"""JSON of a request body: bounded, strict, and exact where exactness matters.

JSON Schemas are kept as the text the client sent (``JsonText``): key order and the spelling of numbers
survive, and a schema of megabytes costs a scan instead of a tree. Repeated keys of an object: the last one
counts, as in Python's ``json``. NaN and Infinity are no JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
import numpy as np

from interlock.errors import InterlockError

JsonKind = Literal["object", "array", "string", "number", "boolean", "null"]

_KINDS: dict[str, JsonKind] = {
    "{": "object",
    "[": "array",
    '"': "string",
    "t": "boolean",
    "f": "boolean",
    "n": "null",
}


class JsonText(str):
    """One well-formed JSON value as text, without white space around it."""

    __slots__ = ()

    @property
    def kind(self) -> JsonKind:
        return _KINDS.get(self[0], "number")


class Kept:
    """In a shape: keep the value as ``JsonText``; ``null`` stays ``None``."""


class EachKept:
    """In a shape: an object whose values are kept as ``JsonText``, whatever its keys."""


KEPT: Final = Kept()
EACH_KEPT: Final = EachKept()
# Which values of a body are kept as text: objects by key, a list of one shape for the items of an array.
Shape = Mapping[str, "Shape"] | list["Shape"] | Kept | EachKept | None

_DECODER = msgspec.json.Decoder(float_hook=float)  # 1e400 is inf here, and refused where a field is read
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_SKIP = msgspec.json.Decoder(msgspec.Raw)

_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_QUOTE = ord('"')


def decode_object(body: bytes, shape: Shape, *, max_nesting: int) -> dict[str, Any]:
    """The JSON object in ``body``, values named by ``shape`` as ``JsonText``.

    Raises ``invalid_json`` for anything else, and for nesting deeper than ``max_nesting``.
    """
    if nesting(body) > max_nesting:
        raise InterlockError("invalid_json", f"the body is nested deeper than {max_nesting} levels")
    try:
        body.decode()
        value = _decode(_SKIP.decode(body), shape)
    except UnicodeDecodeError as error:
        raise InterlockError("invalid_json", f"the body is not UTF-8 (byte {error.start})") from None
    except msgspec.MsgspecError as error:
        raise InterlockError("invalid_json", f"the body is {_reason(error, body)}") from None
    if not isinstance(value, dict):
        raise InterlockError("invalid_json", "the body must be a JSON object")
    return value


def parse_text(text: str, *, max_nesting: int) -> JsonText:
    """JSON that came inside a string, checked. Raises ``ValueError`` with the reason."""
    body = text.encode()
    if nesting(body) > max_nesting:
        raise ValueError(f"nested deeper than {max_nesting} levels")
    try:
        return _text(_SKIP.decode(body))
    except msgspec.MsgspecError as error:
        raise ValueError(_reason(error, body)) from None


def nesting(body: bytes) -> int:
    """Deepest nesting of brackets outside strings, up to the first syntax error. Never recurses."""
    if body.count(b"[") + body.count(b"{") <= 1:
        return 1
    # Pairs first: what is left of a run of backslashes before a quote is one if the quote is escaped.
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    codes = np.frombuffer(plain, np.uint8)
    inside = np.cumsum(codes == _QUOTE, dtype=np.uint8) & 1  # parity survives the overflow
    steps = _STEPS[codes] * (1 - inside.view(np.int8))
    return int(np.cumsum(steps, dtype=np.int32).max())


def _decode(raw: msgspec.Raw, shape: Shape) -> Any:
    if shape is None:
        return _DECODER.decode(raw)
    text = memoryview(raw).tobytes().lstrip(b" \t\r\n")
    if isinstance(shape, Kept):
        return None if text.startswith(b"null") else _text(raw)
    if isinstance(shape, list) and text.startswith(b"["):
        return [_decode(item, shape[0]) for item in _ARRAY.decode(raw)]
    if isinstance(shape, EachKept) and text.startswith(b"{"):
        return {key: _text(value) for key, value in _OBJECT.decode(raw).items()}
    if isinstance(shape, Mapping) and text.startswith(b"{"):
        return {key: _decode(value, shape.get(key)) for key, value in _OBJECT.decode(raw).items()}
    return _DECODER.decode(raw)


def _text(raw: msgspec.Raw) -> JsonText:
    return JsonText(memoryview(raw).tobytes().decode().strip(" \t\r\n"))


def _reason(error: msgspec.MsgspecError, body: bytes) -> str:
    if not body.strip():
        return "empty"
    lowered = body.lower()
    hint = ", or it has half of a surrogate pair (\\ud800 to \\udfff)" if b"\\ud" in lowered else ""
    return f"not valid JSON: {error}{hint}"
