"""Memory that is handed out cleared, for a library that writes what it was given to a file.

Chroma's HNSW index saves its whole table, used or not, and takes the memory for it as it comes: what another part of
the process had there before (an API key, somebody's question) would be in the file. With glibc every piece of memory
that is handed out in the block is zero; elsewhere this does nothing.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PERTURB = -6
"""glibc's M_PERTURB: memory is filled with the complement of this byte when it is handed out."""
_lock, _inside = threading.Lock(), 0


@contextmanager
def cleared() -> Iterator[None]:
    """Hand out zeroes in this block, in every thread; blocks may overlap."""
    global _inside
    with _lock:
        _inside += 1
        if _inside == 1:
            _perturb(0xFF)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _perturb(0)


def _perturb(byte: int) -> None:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no glibc here
        return
    mallopt(_PERTURB, byte)
