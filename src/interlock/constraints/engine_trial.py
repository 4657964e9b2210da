"""What the grammar engine says to a grammar before it is used."""

from __future__ import annotations

import re

from interlock.constraints.providers.base import Provider
from interlock.errors import InterlockError


def refusal(provider: Provider, lark: str) -> str:
    """Why the engine does not take a grammar, "" if it does."""
    try:
        provider.compile(lark)
    except InterlockError as error:
        return own_words(error.message)
    return ""


def own_words(message: str) -> str:
    """Without the place and the excerpt of a grammar that the caller never saw."""
    text = re.split(r"\n +1 \| ", message)[0].strip()
    return re.sub(r"^(the constraint exceeds a limit: )?at \d+\(\d+\): ", r"\1", text)
