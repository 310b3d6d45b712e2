"""The words of a corpus: what its documents, fields and values are called, in English and Chinese.

A vocabulary is a TOML file next to the corpus (``NAME.vocabulary.toml`` next to ``NAME.jsonl``, ``vocabulary.toml`` in
a folder, or ``kb add --vocabulary FILE``), stored with the base. Without one a field goes by its own name and a value
automatically; countries are known in both languages to every base (``words.json``).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StringConstraints,
    ValidationError,
)

from workbench.errors import CorpusError, WorkspaceError
from workbench.extensions import paths
from workbench.plans import Frozen
from workbench.records.writing import write_file
from workbench.state import Data, Json, as_list, without_empty
from workbench.text import CJK, SIZES, fold

FILE = "vocabulary.toml"
LANGUAGES = ("en", "zh")
TYPES = {name: name for name in ("number", "date", "category", "name", "text")} | {
    "categories": "category",
    "names": "name",
}

_Language = Annotated[str, StringConstraints(pattern="^(en|zh)$")]
_Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=80)]
_Relation = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\w{0,60}$")]
_Type = Annotated[
    str,
    StringConstraints(pattern=f"^({'|'.join(TYPES)})?$"),
    AfterValidator(lambda name: TYPES.get(name, "")),
]
Words = Annotated[
    Mapping[_Language, list[_Word]],
    BeforeValidator(
        lambda words: words.get("names", words) if isinstance(words, dict) else words
    ),
]
"""Language (``en``, ``zh``) -> words, the one to show first."""


class FieldMeaning(NamedTuple):
    """The meaning of a field: the relation, the type of its values; ``reverse``: they act."""

    relation: str
    type: str
    reverse: bool = False

    @property
    def category(self) -> bool:
        """Check whether the values only group."""
        return self.type in GROUPING


_CURRENCIES = "eur|usd|gbp|cny"
_SCALES = "k|m|mio_?|million_?|bn_?|billion_?"
_SCALE_NAMES = {"k": "thousand", "m": "million", "b": "billion"}
_UNITS = f"{_CURRENCIES}|kg|g|km2|m2|ha|km|m|cm|mm|ml|ms|s|min|h|kw|w|mw|kb|mb|gb|hz|khz|pct"
_GENERAL: Json = json.loads(
    files("workbench.knowledge").joinpath("words.json").read_text("utf-8")
)
_COUNTRIES: dict[str, dict[str, list[str]]] = _GENERAL["country"]
GROUPING = frozenset(_GENERAL["grouping"])
"""Types of values that only group: two documents of one year have little in common."""


class FieldWords(Frozen):
    """The entry of one field in a vocabulary: every part may be missing."""

    names: Words = Field(default_factory=dict)
    type: _Type = ""
    unit: _Text = ""
    relation: _Relation = ""
    of: _Text = ""
    reverse: StrictBool = False


def _known_source(name: str) -> str:
    sources = paths("sources")
    if name and sources and name not in sources:
        raise ValueError(f"there is no such source. Known: {', '.join(sources)}")
    return name


class Vocabulary(Frozen):
    """The meanings of the words of one corpus."""

    documents: Words = Field(default_factory=dict)
    fields: Mapping[str, FieldWords] = Field(default_factory=dict)
    values: Mapping[str, Mapping[str, Words]] = Field(default_factory=dict)
    measure: _Text = ""
    enrichment: Annotated[str, AfterValidator(_known_source)] = ""

    def meaning(self, name: str) -> FieldMeaning:
        """Return what a field of this name says of a document.

        >>> Vocabulary().meaning("studios")[:2], Vocabulary().meaning("prizeWon")[:2]
        (('has_studio', 'Studio'), ('has_prize_won', 'PrizeWon'))
        """
        return self._meanings.get(name) or self._meanings.get(name.lower()) or _meaning(name)

    @cached_property
    def _meanings(self) -> dict[str, FieldMeaning]:
        meanings = {}
        for name, words in self.fields.items():
            plain = _meaning(name)
            relation = words.relation or plain.relation
            says = FieldMeaning(relation, words.of or plain.type, words.reverse)
            meanings[name] = meanings[says.relation] = says  # a relation's own name says the same
        return meanings

    def canonical(self, name: str, value: str) -> str:
        """Return a value of a field as the documents write it, from any of its words.

        >>> Vocabulary(values={"genres": {"Comedy": {"zh": ["喜剧"]}}}).canonical("genres", "喜剧")
        'Comedy'
        """
        return (
            self._by_word.get(name, {}).get(fold(value))
            or (country(value) if self._of_country(name) else "")
            or value
        )

    @cached_property
    def _by_word(self) -> dict[str, dict[str, str]]:
        return {name: _values_by_word(values) for name, values in self.values.items()}

    def _of_country(self, name: str) -> bool:
        return self.meaning(name).type == "Country"

    def synonyms(self, name: str, value: str) -> list[str]:
        """Other words for a value of a field, in either language."""
        nations = _COUNTRIES if self._of_country(name) else {}
        words = self.values.get(name, {}).get(value) or nations.get(value, {})
        return [word for language in ("zh", "en") for word in words.get(language, [])]

    def called(self, name: str) -> dict[str, list[str]]:
        """Return what a field is called: its own name in its own language, before or after what is given."""
        own = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-\s]+", " ", unit_in(name)[0]).strip()
        own = re.sub("^(?:is |has |是否)(?=.)", "", own)
        names = self.fields.get(name, FieldWords()).names
        language = "zh" if CJK.search(own) else "en"
        common = {} if names else _common("field").get(fold(own), {})
        words = {name: list((names or common).get(name, [])) for name in LANGUAGES}
        synonyms = [word for word in words[language] if fold(word) != fold(own)]
        if common:
            words[language] = [own, *synonyms]
        elif len(synonyms) == len(words[language]):
            words[language].append(own)
        return without_empty(words)

    def values_called(self, name: str, values: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """Words for those of these values that have other words than themselves."""
        own = self.values.get(name, {})
        values = list(values)
        countries = sum(bool(country(value)) for value in values)
        nations = _COUNTRIES if self._of_country(name) or 2 * countries > len(values) else {}
        common = {} if own else _common("value")
        called = {}
        for value in values:
            if words := own.get(value) or nations.get(country(value)) or common.get(fold(value)):
                called[value] = {language: list(several) for language, several in words.items()}
        return called


def load(path: Path) -> Vocabulary:
    """Read a vocabulary file.

    Raises:
        CorpusError: with the file, the key and what is wrong with it.
    """
    largest = 1_000_000  # bytes of a vocabulary file
    try:
        if path.stat().st_size > largest:
            raise CorpusError(
                f"The vocabulary {path} is larger than {largest:,} bytes. Name the right file."
            )
        content = tomllib.loads(path.read_text("utf-8"))
        if isinstance(documents := content.get("documents"), dict):
            content["measure"] = documents.pop("measure", "")
        return Vocabulary.model_validate(content)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])).removesuffix(".[key]")
        raise CorpusError(
            f"The vocabulary {path}: {where} is not usable: {fault['msg']}. See data/README.md for what it may hold."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CorpusError(
            f"The vocabulary {path} cannot be read: {error}. It is a TOML file; see data/README.md."
        ) from None


def stored_vocabulary(folder: Path) -> Vocabulary:
    """Return the vocabulary of the base in this folder; an empty one where it has none."""
    return load(folder / FILE) if (folder / FILE).exists() else Vocabulary()


def keep(folder: Path, path: Path) -> None:
    """Store a vocabulary file with the base in this folder.

    Raises:
        CorpusError: it cannot be read.
    """
    load(path)
    write_file(folder / FILE, path.read_bytes(), replace=True, kind=WorkspaceError)


def beside(paths: Iterable[Path]) -> Path | None:
    """Return the vocabulary file that lies next to these files or in these folders; the first one."""
    for path in paths:
        own = f"{path.name.split('.')[0]}.{FILE}"
        folder, names = (path, [FILE]) if path.is_dir() else (path.parent, [own, FILE])
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return None


def unit_in(name: str) -> tuple[str, str]:
    """Return the name of a field without the unit in it, and the unit.

    >>> unit_in("预算(万元)"), unit_in("功率kW"), unit_in("cost_eur"), unit_in("cost_musd"), unit_in("team_a")
    (('预算', '万元'), ('功率', 'kW'), ('cost', 'EUR'), ('cost', 'million USD'), ('team_a', ''))
    """
    patterns = (
        r"(.+?)\s*[(（\[]([^()（）]{1,10})[)）\]]",
        rf"(.+)_((?:{_SCALES})?(?:{_CURRENCIES})(?:_per_\w+)?|{_UNITS}|bn?|billions?|millions?)",
        rf"(.+?)[_ ]in[_ ]({'|'.join(SIZES)}|lbs)",
        r"([\u4e00-\u9fff]+)\s*([a-zA-Z%℃]{1,4})",
    )
    match = next(filter(None, (re.fullmatch(pattern, name) for pattern in patterns)), None)
    if not match:
        return name, ""
    money = re.fullmatch(rf"({_SCALES})?({_CURRENCIES})(_per_\w+)?", match[2])
    if not money:
        return match[1], {"b": "billion", "bn": "billion"}.get(match[2], match[2])
    scale = f"{_SCALE_NAMES[money[1][0]]} " if money[1] else ""
    return match[1], f"{scale}{money[2].upper()}{(money[3] or '').replace('_', ' ')}"


@cache
def _common(what: str) -> dict[str, dict[str, list[str]]]:
    """Return what people call fields, and values, of common names, by each of these names."""
    return {
        fold(word): entry
        for entry in _GENERAL[what].values()
        for many in entry.values()
        for word in many
    }


def _meaning(name: str) -> FieldMeaning:
    common = _GENERAL["relation"].get(name.lower()) or next(
        (pair for pair in _GENERAL["relation"].values() if pair[0] == name), None
    )
    if common:
        return FieldMeaning(*common)
    words = [w.lower() for w in re.findall(r"[A-Z]?[^\W_A-Z]+|[A-Z]+", name)] or [name]
    words[-1] = re.sub(r"(?<=[^sui])s$", "", re.sub(r"ies$", "y", words[-1]))
    kind = "".join(w[:1].upper() + w[1:] for w in words)
    relation = "_".join(words)
    # a relation already; written_by: somebody did
    if re.search("^has_|_(by|of|in|to|from|at)$", relation):
        return FieldMeaning(relation, "Person" if words[-1] == "by" else kind)
    return FieldMeaning(f"has_{relation}", kind)


def _values_by_word(words_by_value: Mapping[str, Words]) -> dict[str, str]:
    """Return the values by each of their words; of two values with one word the first has it."""
    values: dict[str, str] = {}
    for value, words in words_by_value.items():
        for word in (value, *chain(*words.values())):
            values.setdefault(fold(word), value)
    return values


_COUNTRY_BY_WORD = _values_by_word(_COUNTRIES)


def country(word: str) -> str:
    """Return the English name of the country that a word means, or "".

    >>> country("taiwanese"), country("台湾"), country("banana")
    ('Taiwan', 'Taiwan', '')
    """
    return _COUNTRY_BY_WORD.get(fold(word), "")


# --- Fields that say another name of a thing, and not something else about it ---
#
# ``original_title`` and ``title_en`` are other names of the document; ``authors_zh`` next to ``authors`` has the other
# names of the authors, in their order; the triple ``茶馆 also_known_as Teahouse`` is one of its head. They become
# aliases, by which a thing is found and linked in every language.

_OTHER_NAMES = """
    alias aliases aka also_known_as other_name other_names other_title other_titles alternative_name alternative_names
    alternative_title alternative_titles alternate_title alternate_titles alternate_name alternate_names original_title
    original_name synonyms english_title english_name chinese_title chinese_name native_name native_title
    又名 别名 別名 原名 译名 譯名 中文名 英文名 外文名
"""
_NAMES = frozenset(_OTHER_NAMES.split())
_LANGUAGE = r"(?:en|zh|ja|ko|fr|de|es|it|ru|hans|hant)(?:[_-](?:[a-z]{2}|hans|hant))?"
_OF_TITLE = re.compile(rf"(?:title|name)[_-]{_LANGUAGE}|{_LANGUAGE}[_-](?:title|name)")
_IN_CHINESE = re.compile("[中英外]文.名")
_TWIN = re.compile(rf"(?P<field>.+)[_-]{_LANGUAGE}|{_LANGUAGE}[_-](?P<behind>.+)")


def is_alias(name: str) -> bool:
    """Check whether a field or a relation of this name says another name of its document or head.

    >>> [is_alias(n) for n in ("original_title", "Title_EN", "alsoKnownAs", "又名", "author", "title")]
    [True, True, True, True, False, False]
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", name.strip()).lower()
    return plain in _NAMES or bool(_OF_TITLE.fullmatch(plain) or _IN_CHINESE.fullmatch(plain))


def find_translation(name: str, fields: Data) -> str | None:
    """Return the field whose values this one says in another language, value for value; None when it is no such field.

    >>> fields = {"authors": ["Lao She"], "authors_zh": ["老舍"], "zh_staff": ["赵文"], "staff": ["A", "B"]}
    >>> [find_translation(name, fields) for name in fields]
    [None, 'authors', None, None]
    """
    match = _TWIN.fullmatch(name.lower())
    field = next(
        (n for n in fields if match and n.lower() in (match["field"], match["behind"])), None
    )
    values = _texts(fields[name])
    if field is None or not values or len(_texts(fields[field])) != len(values):
        return None
    return field


def says_names(name: str, fields: Data) -> bool:
    """Check whether a field only says other names: it relates its document to nothing."""
    return is_alias(name) or find_translation(name, fields) is not None


def other_names(fields: Data) -> Iterator[str]:
    """Yield the other names of a document that its fields say."""
    for name, value in fields.items():
        if is_alias(name):
            yield from _texts(value)


def other_names_of_values(fields: Data) -> Iterator[tuple[str, str]]:
    """(name, another name of it) for the values that have a twin in another language."""
    for name, value in fields.items():
        field = None if is_alias(name) else find_translation(name, fields)
        if field is not None:
            yield from zip(_texts(fields[field]), _texts(value), strict=True)


def _texts(value: Any) -> list[str]:
    return short_texts(as_list(value), longest=200)


def short_texts(values: Iterable[Any], longest: int) -> list[str]:
    """Return the texts among values that may be names: of one line, no address, no longer than that."""
    texts = [value.strip() for value in values if isinstance(value, str)]
    return [t for t in texts if t and len(t) <= longest and "\n" not in t and "://" not in t]
