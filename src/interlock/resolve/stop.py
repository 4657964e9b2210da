"""Stop strings within bounds."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.errors import InterlockError

MAX_STOPS = 32
MAX_CHARACTERS = 4096


def resolve_stop(stop: Sequence[str]) -> tuple[str, ...]:
    """The stop strings, each once. Raises ``invalid_value`` for an empty one and for too many."""
    if any(not text for text in stop):
        raise InterlockError("invalid_value", "a stop string must not be empty", param="stop")
    if len(stop) > MAX_STOPS or sum(map(len, stop)) > MAX_CHARACTERS:
        raise InterlockError(
            "invalid_value",
            f"at most {MAX_STOPS} stop strings with {MAX_CHARACTERS} characters in all are supported",
            param="stop",
        )
    return tuple(dict.fromkeys(stop))
