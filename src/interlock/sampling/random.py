"""Counter-based randomness: a pure function of (seed, position), the same on every platform and version.

Two rounds of the splitmix64 finaliser (Steele, Lea, Flood 2014), in integers only: the seed is mixed first so
that neighbouring seeds are unrelated streams, then the position steps through the stream.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_INVERSE_53 = 1.0 / (1 << 53)


def uniform(seed: int, position: int) -> float:
    """A float in [0, 1) with 53 random bits. ``seed`` is taken modulo 2**64, ``position`` is at least 0."""
    stream = _mix((seed + _STEP) & _MASK)
    return (_mix((stream + (position + 1) * _STEP) & _MASK) >> 11) * _INVERSE_53


def _mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
