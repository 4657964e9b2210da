from __future__ import annotations

import platform
import subprocess
import sys

import pytest

STEPS = 50
FAULTS = f"""
import resource, sys
import numpy as np
from interlock.engine.heap import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def step():
    arrays = [np.ones(50_000, dtype=np.float32) for _ in range(8)]

if sys.argv[1] == "kept":
    keep_freed_memory()
step()
before = faults()
for _ in range({STEPS}):
    step()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="sets what only glibc has")
def test_arrays_of_the_size_of_a_row_are_not_faulted_in_again_at_each_step() -> None:
    def faults(mode: str) -> int:
        done = subprocess.run([sys.executable, "-c", FAULTS, mode], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("given back") > 10 * STEPS
    assert faults("kept") < STEPS
