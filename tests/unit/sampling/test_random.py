from __future__ import annotations

import numpy as np
import pytest

from interlock.sampling.random import uniform


@pytest.mark.parametrize(
    ("seed", "position", "expected"),
    [
        (0, 0, 0.6524484863740322),
        (0, 1, 0.7012121095215252),
        (1, 0, 0.36818951565166946),
        (2**64 - 1, 1000, 0.033884161635479915),
    ],
)
def test_values_never_change(seed, position, expected):
    assert uniform(seed, position) == expected


def test_is_keyed_by_seed_and_position():
    values = {uniform(seed, position) for seed in range(50) for position in range(50)}
    assert len(values) == 2500
    assert all(0.0 <= value < 1.0 for value in values)


@pytest.mark.parametrize("axis", ["seed", "position", "diagonal"])
def test_is_uniform_along_seeds_and_positions(axis):
    keys = {"seed": (lambda i: (i, 3)), "position": (lambda i: (7, i)), "diagonal": (lambda i: (i, i))}[axis]
    values = np.array([uniform(*keys(i)) for i in range(20_000)])
    counts, _ = np.histogram(values, bins=50, range=(0, 1))
    chi_square = float(((counts - 400.0) ** 2 / 400.0).sum())
    assert chi_square < 94.0  # 49 degrees of freedom, p = 0.0001
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03
