"""Text that cannot be encoded is refused where it enters, not where a tokenizer trips over it."""

from __future__ import annotations

from interlock.errors import InterlockError


def require_unicode(text: str, *, code: str, param: str) -> None:
    """Raise ``InterlockError(code)`` when ``text`` holds half of a surrogate pair (JSON can spell one)."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InterlockError(
            code, f"the text has an unpaired surrogate at character {error.start}", param=param
        ) from None
