"""Files that a person names: written whole or not at all, and never over another file."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from workbench.errors import WorkbenchError, WorkspaceFull, shown
from workbench.records.sqlite import refused

_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}
"""A file system without hard links."""


def write_file(
    path: str | Path,
    content: bytes,
    *,
    replace: bool = False,
    kind: type[WorkbenchError] = WorkbenchError,
) -> Path:
    """Write a file next to its target under a random name, then put it in its place.

    Args:
        path: the target; the same bytes there already are left as they are.
        content: all of the file.
        replace: whether another file may be replaced. A link never is: what it names is somewhere else.
        kind: of the error.

    Raises:
        WorkbenchError: the target is a folder, a link or another file, or cannot be written.
        WorkspaceFull: there is no room; nothing is left behind.
    """
    target = Path(path).expanduser()
    name = shown(str(target))
    try:
        if target.is_symlink():
            raise kind(f"{name} is a link, and is not written through. Name the file itself.")
        if target.is_dir():
            raise kind(f"{name} is a folder. Name a file in it.")
        if target.exists() and target.read_bytes() == content:
            return target
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(temporary).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
            (os.replace if replace else _place)(temporary, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except FileExistsError:
        raise kind(
            f"{name} is there already, and is something else. Name another file, or remove it."
        ) from None
    except OSError as error:
        problem = refused(error, target)
        if isinstance(problem, WorkspaceFull):
            raise problem from error
        raise kind(
            f"{name} cannot be written: {error.strerror or error}. Name another place."
        ) from error
    return target


def _place(temporary: str, target: Path) -> None:
    """Give a file its name, unless something has it.

    Raises:
        FileExistsError: something has it.
    """
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if target.exists():
            raise FileExistsError(str(target)) from None
        os.replace(temporary, target)
