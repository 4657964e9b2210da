"""llguidance's words for what went wrong, as errors of ours."""

from __future__ import annotations

import re
from typing import Any

from interlock.errors import InterlockError

DEAD_END = "NoExtensionBias"  # stop reason where no token can follow and the grammar cannot end
_MAX_MESSAGE_CHARS = 800
_SPENT = re.compile(r"lexer error|lexer fuel|too many states", re.IGNORECASE)
_LIMIT = re.compile(
    r"fuel|too (complex|many|large|big)|TooComplex|limit|lexer states|exceed|out of memory", re.IGNORECASE
)


def is_panic(exc: BaseException) -> bool:
    """Whether ``exc`` is a panic of native code; those derive from ``BaseException`` and have no import path."""
    return type(exc).__name__ == "PanicException"


def is_fatal(exc: BaseException) -> bool:
    """Whether ``exc`` is neither an error nor a panic of native code, such as an interrupt."""
    return not isinstance(exc, Exception) and not is_panic(exc)


def is_spent(message: str) -> bool:
    """Whether a lexer has reached its limits, which it shares with all copies of its matcher."""
    return _SPENT.search(message) is not None


def message_of(error: BaseException | str) -> str:
    """The first part of a native message: without parser state, grammar and stack trace."""
    text = (
        f"the grammar engine panicked: {error}"
        if isinstance(error, BaseException) and is_panic(error)
        else str(error)
    )
    text = re.split(r"\n<(?:state|non-verbose/)>|\nStack backtrace", text)[0].strip()
    return text[:_MAX_MESSAGE_CHARS] or "no message"


def check_compile(native: Any) -> None:
    """Raises the refusal of the grammar that ``native``, an llguidance matcher, was made of."""
    if native.is_error():
        raise compile_error(native.get_error(), native.stop_reason())


def compile_error(message: str, stop_reason: str = "") -> InterlockError:
    """The refusal of a grammar."""
    text = message_of(message)
    if DEAD_END in (stop_reason, text):
        return InterlockError("invalid_grammar", "the grammar matches nothing")
    if _LIMIT.search(text) or "TooComplex" in stop_reason:
        return InterlockError("constraint_too_complex", f"the constraint exceeds a limit: {text}")
    return InterlockError("invalid_grammar", text)
