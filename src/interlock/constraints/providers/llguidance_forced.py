"""Text that a grammar leaves no choice about at its start."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from interlock.constraints.providers.llguidance_errors import message_of
from interlock.constraints.providers.llguidance_limits import MAX_FORCED_BYTES
from interlock.errors import InterlockError


def check_forced(native: Any, mask: bytes) -> None:
    """Refuse a grammar that forces too much text at its start, or text without an end, which fails only when its first token
    is accepted. native: a matcher at the start. mask: its first. Raises ``InterlockError``."""
    num_forced = len(native.compute_ff_bytes())
    if num_forced > MAX_FORCED_BYTES:
        raise InterlockError(
            "constraint_too_complex",
            f"the constraint begins with {num_forced} bytes of fixed text; at most {MAX_FORCED_BYTES} are supported",
        )
    first = np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little"))[0]
    probe = native.deep_copy()
    if probe.consume_token(int(first)):
        return
    reason = message_of(probe.get_error())
    if num_forced and "items; max" not in reason:
        raise InterlockError("invalid_grammar", "the grammar forces text that never ends")
    raise InterlockError("constraint_too_complex", _in_plain_words(reason))


def _in_plain_words(reason: str) -> str:
    """More ways on than a row of the parser holds, as where thousands of optional keys or rules may follow."""
    found = re.search(r"row has (\d+) items; max is (\d+)", reason)
    if found is None:
        return f"nothing can follow the first token: {reason}"
    return (
        f"the constraint is too wide behind its first token: the parser would hold {found[1]} items, and at most {found[2]} are "
        "supported; offer fewer alternatives or optional parts at one place"
    )
