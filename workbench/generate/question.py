"""What the writer takes from a question: its names, what is asked of them, and what is left as themes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.question.names import Named, mask
from workbench.state import Filters, QueryIntent
from workbench.text import language_of, terms


@dataclass(frozen=True)
class Facet:
    """Something that can be asked of a document or a person.

    ``fields`` are the typed fields that answer it, ``said`` is what a sentence that answers it must hold; ``labels`` are its
    names in English and Chinese.
    """

    name: str
    fields: tuple[str, ...]
    asked: re.Pattern[str]
    said: re.Pattern[str]
    labels: tuple[str, str]


def _facet(name: str, fields: str, asked: str, said: str, english: str, chinese: str) -> Facet:
    flags = re.IGNORECASE
    return Facet(name, tuple(fields.split()), re.compile(asked, flags), re.compile(said, flags), (english, chinese))


PLOT = re.compile(
    r"\babout\b\W*$|\b(?:plot|story|storyline|synopsis|premise|summar\w+|describe|happens?|tell me (?:more )?about)\b"
    r"|讲了?(?:的是|的|述)?(?:了)?(?:一个)?(?:什么|啥|谁)|讲什么|说的?是?什么|剧情|故事|情节|内容|简介|介绍|概括|梗概|关于什么",
    re.IGNORECASE,
)
"""The question wants to be told what something is about."""

FACETS = (
    _facet(
        "birth",
        "birth born birth_year",
        r"\bborn\b|\bbirth|\bhow old is \ue001|\bage of\b|出生|生日|几岁|多大|年龄|生于|哪里人|籍贯",
        r"\bborn\b|birth|year-old|出生|生于",
        "the birth or age",
        "出生或年龄",
    ),
    _facet(
        "box_office",
        "box_office gross revenue",
        r"box[- ]?office|\bgross|\bearn(?:ed|ings)?\b|how much (?:money )?did|revenue|票房|收入",
        r"box[- ]office|\bgross|\bearn(?:ed|ings|ing)?\b|票房",
        "the box office",
        "票房",
    ),
    _facet(
        "budget",
        "budget cost",
        r"\bbudget|\bcost\b|预算|成本|制作费|投资",
        r"\bbudget|\bcost\b|预算|成本",
        "the budget",
        "预算",
    ),
    _facet(
        "rating",
        "rating score",
        r"\bratings?\b|\brated\b|imdb|rotten tomatoes|metacritic|\breviews?\b|\bcritics?\b|评分|豆瓣|口碑|几分|多少分|评价",
        r"\brating|\brated\b|imdb|rotten tomatoes|metacritic|\breview|\bcritic|acclaim|评分|评价|口碑",
        "ratings or reviews",
        "评分或评价",
    ),
    _facet(
        "awards",
        "awards",
        r"\bawards?\b|\boscars?\b|\bwon\b|\bwin\b|nominat|\bprizes?\b|获奖|奖|奥斯卡|提名",
        r"\baward|\boscar|\bwon\b|nominat|\bprize|奖|提名",
        "awards",
        "奖项",
    ),
    _facet(
        "runtime",
        "runtime duration length",
        r"\bhow long\b|running time|\bruntime\b|\bduration\b|how many (?:minutes|hours)|片长|多长|时长|多少分钟|几个?小时",
        r"\bminutes?\b|\bhours? long\b|running time|片长|分钟",
        "the running time",
        "片长",
    ),
    _facet(
        "writer",
        "writers writer screenwriters author authors",
        r"\bwho (?:co-)?(?:wrote|writes|written)|\bwritten by\b|\bwriters?\b|screenwriter|screenplay|\bscript\b|编剧|剧本|谁写",
        r"\b(?:co-)?(?:wrote|written|writer|writers|writing)\b|screenplay|\bscript|编剧|剧本",
        "the writer",
        "编剧",
    ),
    _facet(
        "music",
        "music composer composers",
        r"\bcompos|soundtrack|\bmusic\b|\bscor(?:e|ed)\b|配乐|作曲|主题曲|谁.{0,3}音乐",
        r"\bcompos|soundtrack|\bmusic|\bscore|配乐|作曲|音乐",
        "the music",
        "配乐",
    ),
    _facet(
        "producer",
        "producers producer",
        r"\bproduce[drs]+\b|制片人|制作人|监制|谁制作|出品人",
        r"\bproduce[drs]+\b|\bco-produced|制片|监制",
        "the producer",
        "制片人",
    ),
    _facet(
        "camera",
        "cinematographer cinematographers",
        r"cinematograph|photograph|摄影",
        r"cinematograph|photograph|摄影",
        "the cinematography",
        "摄影",
    ),
    _facet(
        "basis",
        "based_on source",
        r"\bbased (?:up)?on\b|\badapt|source material|original (?:novel|book|story)|改编|原著|原作",
        r"\bbased (?:up)?on\b|\badapt|\bnovel|\bbook\b|\bmemoir|\binspired by\b|改编|小说|原著",
        "what it is based on",
        "改编来源",
    ),
    _facet(
        "setting",
        "setting",
        r"\bset in\b|\btakes? place\b|\bsetting\b|\b(?:where|when) (?:is|was) [\ue001\ue002] set|(?:故事|时代)背景|发生在|设定在",
        r"\bset (?:in|on|at|during|against)\b|\btakes? place\b|\bliv(?:es|ing) in\b|背景|发生在",
        "where or when it is set",
        "故事背景",
    ),
    _facet(
        "filming",
        "filming_locations",
        r"\b(?:filmed|shot)\b(?! by)|\bfilming\b|拍摄地|取景|哪里?(?:里|儿)?拍",
        r"\bfilm(?:ed|ing)\b|\bshot\b|\blocation|拍摄|取景",
        "where it was filmed",
        "拍摄地",
    ),
    _facet(
        "studio",
        "studio studios distributor",
        r"\bstudios?\b|\bdistribut|production compan|which company|制作公司|发行|出品公司",
        r"\bstudio|\bdistribut|\bproductions?\b|\bcompany\b|released by|发行|出品",
        "the studio or distributor",
        "制作或发行公司",
    ),
    _facet(
        "spoken",
        "languages language",
        r"(?:what|which) languages?|什么语言?|哪种语言",
        r"-language\b|\blanguages?\b|\bMandarin\b|\bsubtitle|语",
        "the language",
        "语言",
    ),
    _facet(
        "streaming",
        "streaming",
        r"where (?:can|could|do) (?:i|we|one|you) (?:watch|see|stream)|\bnetflix\b|\bstream(?:ing)?\b|哪里?(?:里|儿)?(?:能|可以)?看|平台",
        r"\bnetflix\b|\bstream(?:ing|ed)?\b|平台",
        "where it can be watched",
        "观看渠道",
    ),
    _facet(
        "alias",
        "aliases",
        r"\b(?:chinese|english|original|other|alternative|foreign) (?:title|name)|(?:called|named|title) in (?:chinese|english)"
        r"|(?:中文|英文|原|中文译|英文原)(?:片?名|译名)|又名|译名|别名",
        r"\bknown as\b|\btitled\b|又名|译名",
        "another title",
        "其他片名",
    ),
    _facet(
        "year",
        "year date",
        r"\bwhen\b|\b(?:what|which) year\b|\brelease date\b|\byear of\b|\bhow old is\b|哪一?年|何时|何年|什么时候|几几年|年份|上映(?:时间|日期)|哪一?天",
        r"\b(?:18|19|20)\d\d\b",
        "the year",
        "年份",
    ),
    _facet(
        "director",
        "directors director",
        r"\bwho(?:m|'s|’s)?\b[^?]*\b(?:direct\w*|filmmaker|ma[dk]es?|helm\w*|behind)\b|\bdirect(?:or|ors|ed by)\b"
        r"|导演是|(?:谁|哪位|哪个|什么人)[^，。？]{0,4}(?:执导|导演|导的|拍的|拍摄|指导|导)|(?:导演|执导)[^，。？]{0,3}(?:谁|哪)|的导演|谁.{0,2}拍",
        r"\bdirect(?:ed|or|orial)|执导|导演",
        "the director",
        "导演",
    ),
    _facet(
        "cast",
        "cast actors",
        r"\bwho(?:'s|’s)? (?:else )?(?:stars?|starred|acts?|acted|plays?|played|appears?|appeared|is in|was in|portray\w*)\b"
        r"|\bcast\b|\bactors?\b|\bactress(?:es)?\b|\bstar(?:s|red|ring)?\b|主演|演员|谁演|出演|谁饰|饰演|卡司|阵容|扮演",
        r"\bstar(?:s|red|ring)?\b|\bplay(?:s|ed|ing)?\b|\bas\b|\bcast\b|\bvoiced?\b|\bportray|主演|饰|演",
        "the cast",
        "主演",
    ),
    _facet(
        "genre",
        "genres genre",
        r"\bgenres?\b|\b(?:what|which) (?:kind|type|sort) of\b|类型|题材|什么片|哪类|哪种(?:片|电影)",
        r"\b(?:comedy|drama|action|thriller|horror|romance|western|musical|fiction|fantasy|war|noir|mystery)\b|片",
        "the genre",
        "类型",
    ),
    _facet(
        "country",
        "countries country",
        r"\b(?:what|which) countr(?:y|ies)|\bwhere (?:is|was|does) [\ue001\ue002] (?:from|made|produced|come)|\bcountry\b|哪国|哪个国家|国家|产地|制片地",
        r"\bAmerican\b|\bBritish\b|\bco-production|[A-Z][a-z]+ese\b|国",
        "the country",
        "制片国家/地区",
    ),
)
_EXCLUDES = {"birth": {"year"}, "setting": {"year"}, "filming": {"country"}, "awards": {"year"}, "streaming": {"year"}}


@dataclass(frozen=True)
class Subject:
    """A name in the question. ``known``: a knowledge base has it; ``doc_id``: the document that is about it."""

    name: str
    surface: str
    type: str = ""
    known: bool = False
    doc_id: str | None = None

    @property
    def is_person(self) -> bool:
        """Whether a knowledge base says so."""
        return self.type == "person"


@dataclass(frozen=True)
class Question:
    """A question as the writer sees it. ``masked`` has one sign for each name, ``themes`` what is left of its content."""

    text: str
    language: str
    intent: QueryIntent
    subjects: tuple[Subject, ...] = ()
    filters: Filters = field(default_factory=Filters)
    masked: str = ""
    themes: tuple[str, ...] = ()

    def facets(self, fields: Sequence[str] = ()) -> list[Facet]:
        """What is asked of its subjects; ``fields`` are the typed fields that the evidence has, each askable by its name.

        >>> [f.name for f in Question("", "en", "qa", masked="who directed \ue002 and when?").facets()]
        ['year', 'director']
        >>> [f.name for f in Question("", "zh", "qa", masked="\ue002哪一年上映？").facets()]
        ['year']
        """
        found = [facet for facet in FACETS if facet.asked.search(self.masked)]
        shut = set().union(*(_EXCLUDES.get(facet.name, set()) for facet in found)) if found else set()
        answered = {name for facet in FACETS for name in facet.fields}
        words = set(terms(self.masked))
        own = [name for name in fields if name not in answered and set(terms(name.replace("_", " "))) <= words]
        return [facet for facet in found if facet.name not in shut] + [
            _facet(
                name, name, re.escape(name), re.escape(name.replace("_", " ")), f"the {name}".replace("_", " "), name
            )
            for name in own
        ]

    @property
    def wants_plot(self) -> bool:
        """Whether it asks what something is about."""
        return bool(PLOT.search(self.masked))

    @property
    def wants_work(self) -> bool:
        """Whether it describes a work and asks which one it is."""
        return bool(
            re.search(
                r"\b(?:which|what)(?:'s| is| was)?(?: the)?(?: \w+)? (?:film|movie|one|title)\b|\b(?:film|movie|one) (?:about|where|in which|that|with|set)\b"
                r"|哪一?[部个](?:电影|影片|片子|片|作品)?|什么(?:电影|片子?)|的(?:那部|那个)?(?:电影|影片|片子)",
                self.masked,
            )
        )

    @property
    def wants_count(self) -> bool:
        """Whether it asks how many."""
        return bool(re.search(r"\bhow many\b|\bnumber of\b|多少部|几部|多少个", self.masked))

    @property
    def extreme(self) -> str:
        """``first``, ``last`` or ``""``: whether it wants the earliest or the latest of several."""
        if re.search(r"\b(?:first|debut|earliest|oldest)\b|最早|第一部|首部|处女作", self.masked):
            return "first"
        return (
            "last" if re.search(r"\b(?:latest|newest|most recent|last)\b|最新|最近|最后一部|最晚", self.masked) else ""
        )

    @property
    def is_yes_no(self) -> bool:
        """Whether yes or no answers it.

        >>> Question("", "en", "qa", masked="did \ue001 direct \ue002?").is_yes_no
        True
        """
        return bool(
            re.search(
                r"^\W*(?:is|are|was|were|did|does|do|has|have|had)\b(?! you\b)|吗\W*$|是不是|是否|对不对|对吗",
                self.masked,
            )
        )

    @property
    def wanted(self) -> int | None:
        """How many are asked for, where a number is named.

        >>> Question("", "en", "list", masked="recommend three films").wanted, Question("", "zh", "list", masked="推荐5部").wanted
        (3, 5)
        """
        words = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10, "a couple": 2}
        zh = {"两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "一": 1}
        match = re.search(
            rf"(?:\b(\d{{1,2}}|{'|'.join(words)})\s+(?:\w+[ -]){{0,2}}(?:films?|movies?|titles?|works?|others?|comedies|more)\b)|([{''.join(zh)}]|\d{{1,2}})\s?[部个](?!年)",
            self.masked,
        )
        if not match or re.search(r"[每哪][一]?[部个]", self.masked):
            return None
        found = match.group(1) or match.group(2)
        number = int(found) if found.isdigit() else {**words, **zh}[found]
        return number if 0 < number <= 50 else None


def asked(
    text: str,
    intent: QueryIntent,
    filters: Filters,
    names: Sequence[Named],
    documents: Mapping[str, str | None],
    themes: Sequence[str],
    language: str = "",
) -> Question:
    """A question from what was read of it; ``documents`` gives the document about an entity id."""
    subjects = tuple(
        Subject(n["name"], n["surface"], n["type"].lower(), bool(n["entity_id"]), documents.get(n["entity_id"]))
        for n in names
    )
    return Question(
        text=text,
        language=language or language_of(text),
        intent=intent,
        subjects=tuple(dict.fromkeys(subjects)),
        filters=filters,
        masked=mask(text, names),
        themes=tuple(themes),
    )
