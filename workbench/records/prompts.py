"""The prompts of the roles: one file a role and language, that can be read, edited, compared and put back.

``workbench/prompts/planner.en.toml`` holds a version, a ``system`` text and a ``user`` text with slots such as
``$question``; ``$$`` is a dollar sign. A file of the same name in a workspace's ``prompts`` folder takes its place, and
what is set in a notebook (``wb.prompts["planner"] = {"system": ...}``) the place of both, until ``del``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from workbench.errors import SettingsError, shown
from workbench.state import Data, Json
from workbench.text import clean, text_digest

SHIPPED = Path(__file__).resolve().parent.parent / "prompts"
LANGUAGES = ("en", "zh")
NAMES = tuple(sorted(path.name.removesuffix(".en.toml") for path in SHIPPED.glob("*.en.toml")))
"""What prompts are for: one per role, and more of the planner and writer."""
_PARTS = ("system", "user")


@dataclass(frozen=True)
class Prompt:
    """The prompt of one role in one language.

    Attributes:
        role: whose.
        language: of the question, ``en`` or ``zh``.
        version: the file's own number.
        system: the instructions.
        user: what is asked, with its slots.
        source: ``shipped``, the file it was read from, or ``edited``.
    """

    role: str
    language: str
    version: int
    system: str
    user: str
    source: str = "shipped"

    @property
    def name(self) -> str:
        """``planner.en``."""
        return f"{self.role}.{self.language}"

    @property
    def label(self) -> str:
        """Its version; one that is not the shipped one has a digest of its text behind it."""
        digest = text_digest(f"{self.system}\0{self.user}", 6)
        return str(self.version) if self.source == "shipped" else f"{self.version}+{digest}"

    def messages(self, slots: Mapping[str, str]) -> list[list[str]]:
        """``[["system", text], ["human", text]]`` with every slot filled in; none can begin or end a fence."""
        texts = {name: fenced(text) for name, text in slots.items()}
        return [
            [kind, Template(text).substitute(texts).strip()]
            for kind, text in (("system", self.system), ("human", self.user))
        ]

    def dump(self) -> Json:
        """Return the fields as JSON."""
        return {name: getattr(self, name) for name in ("version", "system", "user", "source")}


class Prompts(MutableMapping[str, Prompt]):
    """Every prompt by its name: ``prompts["planner"]`` is the English one, ``prompts["planner.zh"]`` the Chinese.

    Args:
        folder: whose files take the place of the shipped ones, if it is there.
        kept: prompts as ``dump`` gives them, by name, that take the place of both.
    """

    def __init__(self, folder: Path | None = None, saved: Mapping[str, Data] | None = None):
        self._folder = folder
        self._edited: dict[str, Prompt] = {}
        for name, texts in (saved or {}).items():
            prompt = Prompt(*_split(name), **texts)
            _check(prompt)
            self._edited[prompt.name] = prompt

    def __getitem__(self, name: str) -> Prompt:
        role, language = _split(name)
        return self._edited.get(f"{role}.{language}") or self._read(role, language)

    def __setitem__(self, name: str, value: Prompt | Mapping[str, str] | str | Path) -> None:
        """Use another prompt from now on: a ``Prompt``, its texts, or the path of a file."""
        prompt = make_prompt(name, value, self)
        self._edited[prompt.name] = prompt

    def __delitem__(self, name: str) -> None:
        """Take what was set back: the file's text counts again."""
        role, language = _split(name)
        self._edited.pop(f"{role}.{language}", None)

    def __iter__(self) -> Iterator[str]:
        return (f"{role}.{language}" for role in NAMES for language in LANGUAGES)

    def __len__(self) -> int:
        return len(NAMES) * len(LANGUAGES)

    def for_language(self, role: str, language: str) -> Prompt:
        """Return the prompt of a role for a question in this language."""
        return self[f"{role}.{language}"]

    def own(self) -> dict[str, Json]:
        """Return every prompt that is not the shipped one, as JSON, by name."""
        return {
            name: prompt.dump() for name, prompt in self.items() if prompt.source != "shipped"
        }

    def _read(self, role: str, language: str) -> Prompt:
        path = self._folder / f"{role}.{language}.toml" if self._folder else None
        if path is not None and path.is_file():
            return read(path, role, language)
        return shipped(role, language)


def make_prompt(name: str, value: Any, among: Mapping[str, Prompt]) -> Prompt:
    """Return a prompt from a ``Prompt``, its texts, or the path of a file.

    Raises:
        SettingsError: it is none of these, or names a slot that the role does not have.
    """
    role, language = _split(name)
    if isinstance(value, Prompt):
        new = replace(value, role=role, language=language, source="edited")
    elif isinstance(value, Mapping) and value and set(value) <= {"system", "user"}:
        new = replace(among[f"{role}.{language}"], source="edited", **value)
    elif isinstance(value, (str, Path)) and str(value).endswith(".toml"):
        new = read(Path(value).expanduser(), role, language)
    else:
        raise SettingsError(
            f"The prompt {name} is {shown(value)}. Give the path of a .toml file, or {{'system': ..., 'user': ...}}."
        )
    _check(new)
    return new


@cache
def shipped(role: str, language: str) -> Prompt:
    """Return the prompt that comes with the package."""
    return replace(read(SHIPPED / f"{role}.{language}.toml", role, language), source="shipped")


def read(path: Path, role: str, language: str) -> Prompt:
    """Return a prompt from its file.

    Raises:
        SettingsError: the file cannot be read, or is not a prompt of this role.
    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
        texts = {part: table.pop(part) for part in _PARTS}
        version = table.pop("version", 1)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError) as error:
        raise SettingsError(
            f"{path} is not a prompt: {error}. It needs `version`, `system` and `user`."
        ) from None
    if table or not isinstance(version, int):
        raise SettingsError(
            f"{path} is not a prompt: it has `version`, a number, and `system` and `user`, two texts."
        )
    prompt = Prompt(role, language, version, **texts, source=str(path))
    _check(prompt)
    return prompt


_UNSEEN = re.compile(
    "[\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""What a model reads and a person does not see: no width, another direction, tags."""
_FENCE = re.compile(
    r"[<＜﹤](?=[\s/／\\]*(?:answer|bases|conversation|corpus|data|evidence|first|found|reference|second)\b)",
    re.IGNORECASE,
)


def fenced(text: str) -> str:
    """Return a text for a slot: what would begin or end a fence is broken, and what no one sees is gone.

    >>> fenced("[1] x </evidence> < / FOUND > </evi\\u200bdence> <b>")
    '[1] x ‹/evidence> ‹ / FOUND > ‹/evidence> <b>'
    """
    return _FENCE.sub("‹", _UNSEEN.sub("", clean(text)))


@cache
def slots(role: str) -> tuple[str, ...]:
    """Return what the prompt of a role may name, all filled in: what the shipped one names."""
    texts = tomllib.loads((SHIPPED / f"{role}.en.toml").read_text("utf-8"))
    return tuple(Template(f"{texts['system']}\n{texts['user']}").get_identifiers())


def _split(name: str) -> tuple[str, str]:
    role, _, language = str(name).partition(".")
    if role not in NAMES or (language or "en") not in LANGUAGES:
        raise SettingsError(
            f"There is no prompt {shown(name)}. Known: {', '.join(NAMES)}; with .zh the Chinese one."
        )
    return role, language or "en"


def _check(prompt: Prompt) -> None:
    # Characters of a prompt's text.
    longest = 100_000
    for part in _PARTS:
        text = getattr(prompt, part)
        if not isinstance(text, str) or len(text) > longest:
            raise SettingsError(
                f"{part} of the prompt {prompt.name} is {shown(text)}. Give a text of at most {longest:,}."
            )
        template = Template(text)
        if not template.is_valid():
            raise SettingsError(
                f"{part} of the prompt {prompt.name} has a lone $. Write $$ for a dollar sign."
            )
        unknown = [slot for slot in template.get_identifiers() if slot not in slots(prompt.role)]
        if unknown:
            slot_names = ", ".join(f"${slot}" for slot in slots(prompt.role))
            raise SettingsError(
                f"The prompt {prompt.name} names ${unknown[0]}. Known to this role: {slot_names}."
            )
