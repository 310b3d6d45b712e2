"""Arrays in one file beside an index, made of it and read back by memory map: whole and of this content, or not at all.

The file begins with a line of JSON (what it was made of, which arrays lie where, their checksum). It is written aside
and put in its place at once, so that a kill leaves the old file or the new one; a file that is damaged, or was made of
another content, is taken for none.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.lease import taken

if TYPE_CHECKING:
    import numpy as np

_ALIGNED = 64
_LONGEST_HEAD = 65_536
_log = logging.getLogger(__name__)


def keep(path: Path, content: str, arrays: Mapping[str, np.ndarray]) -> bool:
    """Write the arrays; False, and a line in the log, where the folder cannot be written: nothing is lost by that."""
    import numpy as np

    places, at, checksum = {}, 0, 0
    blocks = [np.ascontiguousarray(array) for array in arrays.values()]
    for name, block in zip(arrays, blocks, strict=True):
        places[name] = [block.dtype.str, list(block.shape), at]
        at += block.nbytes + -block.nbytes % _ALIGNED
        checksum = zlib.crc32(block.tobytes(), checksum)
    head = json.dumps({"content": content, "arrays": places, "size": at, "checksum": checksum}) + "\n"
    head = head[:-1] + " " * (-len(head) % _ALIGNED) + "\n"
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with open(new, "wb") as file, taken(new):
            file.write(head.encode())
            for block in blocks:
                file.write(block.tobytes() + b"\0" * (-block.nbytes % _ALIGNED))
            file.flush()
            os.fsync(file.fileno())
            os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        _log.warning("%s cannot be kept (%s): it is made anew in every process.", path, error.strerror or error)
        return False
    return True


def kept(path: Path, content: str) -> dict[str, np.ndarray] | None:
    """The arrays that were made of this content, by memory map; None when there are none, or not whole."""
    import numpy as np

    try:
        with open(path, "rb") as file:
            line = file.readline(_LONGEST_HEAD)
        head = json.loads(line)
        if head["content"] != content or path.stat().st_size != len(line) + head["size"]:
            return None
        found = {
            name: np.memmap(path, np.dtype(kind), "r", len(line) + at, tuple(shape))
            if all(shape)
            else np.zeros(shape, kind)
            for name, (kind, shape, at) in head["arrays"].items()
        }
    except (OSError, ValueError, KeyError, TypeError):  # no file, or not one of ours: it is made of the index anew
        return None
    checksum = 0
    for array in found.values():
        checksum = zlib.crc32(array.data, checksum)
    return found if checksum == head["checksum"] else None
