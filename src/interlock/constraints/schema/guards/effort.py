"""How much guards have looked at, as a bound on it that no clock decides."""

from __future__ import annotations

import threading


class _Effort(threading.local):
    num_followed = 0


effort = _Effort()
"""num_followed: tokens that guards have followed on this thread."""
