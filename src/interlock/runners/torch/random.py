"""``sampling/random.py`` on the device: the same number for the same seed and position, bit for bit."""

from __future__ import annotations

import torch

_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)
_INVERSE_53 = 1.0 / (1 << 53)


def uniform(seeds: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """float64 in [0, 1). seeds: int64, the bits of unsigned ones. positions: int64. Products wrap, as they have to."""
    stream = _mix(seeds + _STEP)
    return _shifted(_mix(stream + (positions + 1) * _STEP), 11).double() * _INVERSE_53


def _mix(value: torch.Tensor) -> torch.Tensor:
    value = (value ^ _shifted(value, 30)) * _FIRST
    value = (value ^ _shifted(value, 27)) * _SECOND
    return value ^ _shifted(value, 31)


def _shifted(value: torch.Tensor, bits: int) -> torch.Tensor:
    """To the right, with zeros coming in; the operator brings in the sign."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)
