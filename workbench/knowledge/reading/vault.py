"""Notes of an Obsidian vault as Obsidian shows them: links by their words, embeds in place, comments left out."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

MARK = ".obsidian"
"""The folder at the root of a vault."""
_LINK = re.compile(r"(!?)\[\[([^\[\]|#^]*)((?:#[^\[\]|]*)?)(?:\|([^\[\]]*))?\]\]")
_TAG = re.compile(r"(?<![\w/#&(\[])#((?=[\w/-]*[^\W\d])[\w/-]+)")
_CODE = re.compile(r"(?ms)^(```|~~~).*?^\1[^\n]*$|`[^`\n]+`")


def find_root(folder: Path) -> Path | None:
    """Return the root of the vault that a folder is in; None where it is in none."""
    return next((path for path in (folder, *folder.parents) if (path / MARK).is_dir()), None)


def find(root: Path, name: str) -> Path | None:
    """Return the note that a link names: by its path from the root, or by its name alone."""
    wanted = name.strip().lower().removesuffix(".md")
    return _notes(root).get(wanted) if wanted else None


@lru_cache(maxsize=8)
def _notes(root: Path) -> dict[str, Path]:
    paths = dict[str, Path]()
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(place, name) for name in names if name.lower().endswith(".md")):
            paths[path.relative_to(root).with_suffix("").as_posix().lower()] = path
            paths.setdefault(path.stem.lower(), path)
    return paths


def refresh() -> None:
    """Forget which notes there are: files come and go between two readings."""
    _notes.cache_clear()


def unlinked(text: str) -> str:
    """Return a text in which each link is the words that it shows.

    >>> unlinked("Ask [[Notes/lamp|the lamp]] or [[gate]] and [[lamp#Oil]].")
    'Ask the lamp or gate and lamp > Oil.'
    """
    return _LINK.sub(lambda link: link[4] or " > ".join(filter(None, (link[2], link[3].strip("#^")))), text)


def shown(text: str) -> str:
    """Return a note without its comments and the names of its blocks, its links as words."""
    text = re.sub(r"%%.*?%%", "", text, flags=re.DOTALL)
    return unlinked(re.sub(r"(?m)[ \t]+\^[\w-]+$", "", text))


def embeds(text: str) -> list[tuple[str, str, str]]:
    """Return what a note embeds: (the link, the name of the file, the section)."""
    return [(link[0], link[2], link[3]) for link in _LINK.finditer(text) if link[1]]


def tags(text: str) -> list[str]:
    """Return the tags in a text, in their order.

    >>> tags("#oil and `#code`, see #lamp/green, no #1 and a#b")
    ['oil', 'lamp/green']
    """
    return list(dict.fromkeys(_TAG.findall(_CODE.sub("", text))))
