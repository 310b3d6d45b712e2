"""The names in a question: what knowledge bases know by name, and what is only written like one.

A base links the names that it knows. Other quoted or capitalised words are names too: they are searched for, and the
answer points out names that the corpus does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from workbench.knowledge.names.schema import SURNAMES
from workbench.knowledge.names.surfaces import ordinary_words
from workbench.ports import Bases, Field, KnowledgeBase, Mention
from workbench.state import NameRead
from workbench.text import CJK, fold

QUOTED = re.compile(
    r"《([^》]+)》|〈([^〉]+)〉|「([^」]+)」|『([^』]+)』|\"([^\"]{2,80})\"|“([^”]{2,80})”|`([^`]{2,80})`"
)
_WORD = r"(?:(?:[A-Z]['’])?[A-Z]\w*(?:-\w+)*|[A-Z]\.)"
_CAPITALISED = re.compile(rf"(?<![\w'’]){_WORD}(?: (?:(?:of|the|de|del|van|von|la|le|du) )*(?:{_WORD}|\d+))*")
_DATED = frozenset(
    (
        *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
        *("november", "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        *("english", "chinese", "i", "i'm", "i'd", "i've"),
    )
)
# The characters with which foreign names are written; they say where such a name ends, since no space does.
_SOUNDS = (
    "阿埃艾爱安昂奥巴拜班邦鲍贝本比彼毕宾波伯博布采查达戴丹当道德登迪蒂丁东杜顿多厄恩尔法范菲费芬丰弗福盖甘冈戈格根贡古哈海汉豪赫亨洪胡华惠霍"
    "基吉季加贾简杰捷金津卡凯坎康考柯科克肯库夸奎昆拉莱赖兰朗劳勒雷里理利莉列林琳龙隆卢鲁露伦罗洛吕马玛迈麦曼芒茂梅门蒙米密敏明摩莫默姆穆"
    "纳娜南内尼妮涅宁纽农努诺欧帕潘庞佩彭皮平珀蒲普漆奇齐恰钱乔切琴琼丘屈让热日荣茹瑞若萨塞赛桑瑟森沙莎山珊尚绍舍申什圣施诗史舒朔斯丝思松苏"
    "索所塔泰坦汤唐陶特滕提廷通图托陀瓦万旺威韦维魏温文翁沃乌伍武西希锡霞夏香肖谢辛欣新兴休修许雪雅亚延扬杨尧耶叶伊依以因英尤于约赞泽扎詹珍"
    "芝治朱茱兹佐"
)
_DOTTED = re.compile(rf"[{_SOUNDS}]{{1,6}}(?:[·・•][{_SOUNDS}]{{1,8}}){{1,3}}")
_PERSON = rf"([{SURNAMES}][\u4e00-\u9fff]{{1,2}}|[\u4e00-\u9fff]+(?:·[\u4e00-\u9fff]+)+)"
_ASKED_ABOUT = re.compile(rf"^(?:请问)?{_PERSON}(?:到底|究竟)?(?:是谁|是什么人|是何许人)|^谁是{_PERSON}[？?]?$")
_LOOKBACK = 300


def names_in(text: str, bases: Bases) -> list[NameRead]:
    """Return the names of a text in its order; where several knowledge bases know one, the first describes it."""
    quotes = [match.span() for match in QUOTED.finditer(text)]
    names: list[NameRead] = []
    for base in bases:
        linked = (_linked(text, mention, base, quotes) for mention in base.link(text))
        names += [name for name in linked if name]
    known_names = _without_overlaps(names)
    owners = [match.span(1) for base in bases if (match := _owner_of_field(text, base))]
    return _without_overlaps([*known_names, *_unknown(text, [*quotes, *owners], known_names)])


def _owner_of_field(text: str, base: KnowledgeBase) -> re.Match[str] | None:
    """Match the name in 海风的作者是谁, of which a field is asked; descriptions and pronouns are not names."""
    fields = base.about()["fields"]
    words = {word for field in fields for word in field["called"].get("zh", ())}
    common = {*base.about()["nouns"].get("zh", ()), *(value for field in fields for value in _chinese_values(field))}
    match = re.match(
        rf"(?:请问)?([\u4e00-\u9fff]{{2,12}})的(?:{'|'.join(map(re.escape, words)) or '$'})(?![\u4e00-\u9fff]*的)", text
    )
    if match is None or re.search(r"[这那该此本它他她哪什谁最和与的]|所有|每", match[1]):
        return None
    return None if any(word in match[1] for word in common) else match


def _chinese_values(field: Field) -> list[str]:
    words = [word for by_language in field["values_called"].values() for word in by_language.get("zh", ())]
    return [word for word in (*field["values"], *words) if CJK.match(word)]


def blotted(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with these parts blotted out, at the same length: the 2049 of a title is no year.

    >>> blotted("like Ali?", [(5, 8)])
    'like ___?'
    """
    for start, end in spans:
        text = text[:start] + "_" * (end - start) + text[end:]
    return text


def bare(surface: str) -> str:
    """Return a surface without its quotation marks.

    >>> bare("《茶馆》"), bare("Lao She")
    ('茶馆', 'Lao She')
    """
    return surface.strip('《》〈〉「」『』"“”` ')


def _linked(text: str, mention: Mention, base: KnowledgeBase, quotes: Sequence[tuple[int, int]]) -> NameRead | None:
    start, end = mention["start"], mention["end"]
    entity, surface = base.entity(mention["entity_id"]), text[start:end]
    if (
        entity is None
        or len(re.sub(r"\W", "", surface)) < 2
        or all(w in _DATED or w.isdigit() for w in surface.lower().split())
    ):
        return None
    around = next((q for q in quotes if q[0] <= start and end <= q[1]), None)
    if around:
        if fold(text[around[0] + 1 : around[1] - 1]) != fold(surface):
            return None  # 《茶馆2》 is another thing than 《茶馆》
        start, end = around
    elif surface.isascii() and surface.islower() and any(c.isupper() for c in entity["name"]):
        ordinary = surface in ordinary_words()
        if ordinary or (not entity["doc_id"] and text != text.lower()):
            return None  # who writes capitals writes names with them, and an ordinary word is one
    return NameRead(
        surface=text[start:end],
        start=start,
        end=end,
        name=entity["name"],
        type=entity["type"],
        entity_id=entity["entity_id"],
        doc_id=entity["doc_id"] or "",
        bases=[base.name],
    )


def _unknown(text: str, quotes: Sequence[tuple[int, int]], linked: Sequence[NameRead]) -> list[NameRead]:
    """Return names that no knowledge base has: quoted titles, capitalised names, dotted foreign ones, X of X是谁."""
    matches = [*_ASKED_ABOUT.finditer(text), *_DOTTED.finditer(text)]
    return [
        NameRead(surface=text[s:e], start=s, end=e, name=bare(text[s:e]), type="", entity_id="", doc_id="", bases=[])
        for s, e in [*quotes, *_capitalised(text), *(match.span(match.lastindex or 0) for match in matches)]
        if not any(s < n["end"] and n["start"] < e for n in linked)
    ]


def _capitalised(text: str) -> list[tuple[int, int]]:
    """Return the spans of capitalised words, without first words of sentences and months.

    >>> [("Did Zhang Yimou direct Hero?")[s:e] for s, e in _capitalised("Did Zhang Yimou direct Hero?")]
    ['Zhang Yimou', 'Hero']
    """
    if text.upper() == text and not CJK.search(text):
        return []
    spans = []
    for match in _CAPITALISED.finditer(text):
        start = match.start()
        words = list(re.finditer(r"\S+", match.group()))
        begins = not re.search(r"[\w,;:][^\w.?!。？！]*$", text[max(0, start - _LOOKBACK) : start])
        while words and (
            _plain(words[0].group()) in _DATED or (begins and _plain(words[0].group()) in ordinary_words())
        ):
            words.pop(0)
        while words and (_plain(words[-1].group()) in _DATED or (len(words) == 1 and words[0].group().isdigit())):
            words.pop()
        if not words:
            continue
        first, last = start + words[0].start(), start + words[-1].end()
        unit = re.search(r"\d\s?$", text[:first])
        if not (begins and len(words) == 1 and first == start) and not unit and last - first > 1:
            spans.append((first, last))
    return spans


def _plain(word: str) -> str:
    return re.sub(r"['’]s$", "", word.lower())


def _without_overlaps(names: Sequence[NameRead]) -> list[NameRead]:
    """Return names in the order of the text; the longer of two that overlap; two bases with one span give one name."""
    result: list[NameRead] = []
    for name in sorted(names, key=lambda n: n["start"] - n["end"]):
        same = next((k for k in result if (k["start"], k["end"]) == (name["start"], name["end"])), None)
        if same:
            same["bases"] += [base for base in name["bases"] if base not in same["bases"]]
        elif not any(name["start"] < k["end"] and k["start"] < name["end"] for k in result):
            result.append(name)
    return sorted(result, key=lambda n: n["start"])
