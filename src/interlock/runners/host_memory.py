"""Memory of the host that goes back to the system when it is let go of."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray


def host_buffer(num_bytes: int) -> NDArray[np.uint8]:
    """``num_bytes`` of memory, mapped on their own: what malloc keeps of freed blocks of this size would count as the
    process's. Raises ``OSError`` where there is no room."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, num_bytes, flags=private), dtype=np.uint8)
