"""What a question wants: qa, recommend, compare, list or person; and whether it is a question at all.

Cues are patterns over the masked question (names are one sign each), each with a weight: how much it alone speaks for its
intent. The cues of one intent add up as independent evidence, ``1 - product(1 - weight)``. Confidence is that strength,
halved as far as the next intent is as strong. A new phrasing is one more line in ``CUES``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, get_args

from workbench.question.names import OTHER, PERSON, Named, is_person, mask
from workbench.state import QueryIntent

FILM_EN = (
    r"(?:films?|movies?|pictures?|titles|works?|shows?|series|documentar(?:y|ies)|comed(?:y|ies)|dramas?|thrillers?|musicals?"
    r"|westerns?|romances?|biopics?|sci-?fi)"
)
FILMS_EN = (
    r"(?:films|movies|pictures|titles|works|shows|documentaries|comedies|dramas|thrillers|musicals|westerns|romances|biopics"
    r"|cartoons|filmography)"
)
FILM_ZH = r"(?:电影|影片|片子|作品|剧集|电视剧|纪录片|动画|[喜悲科动恐惊爱战警剧][\u4e00-\u9fff]{0,4}片|片)"
_ANY = f"[{PERSON}{OTHER}]"
_NOT_POSSESSIVE = r"(?!['’]s|的|\w)"


class Cue(NamedTuple):
    """One pattern that speaks for an intent with a weight of 0 to 1."""

    intent: QueryIntent
    weight: float
    pattern: re.Pattern[str]


def _cues(intent: QueryIntent, *lines: tuple[float, str]) -> list[Cue]:
    return [Cue(intent, weight, re.compile(pattern)) for weight, pattern in lines]


CUES: list[Cue] = [
    *_cues(
        "compare",
        (0.95, r"\bcompar(?:e|es|ed|ing|ison|isons)\b|\bcontrast\b"),
        (0.9, rf"\bversus\b|{_ANY}\W*\bvs\b|\bvs\.? "),
        (0.85, r"\bdifferen(?:ce|ces|tiate)\b|\bdiffers?\b|\bin common\b|\bsimilarit(?:y|ies)\b|\bdifferent\b.*\bfrom\b"),
        (0.85, r"\b(?:which|who|what)\b.*\b(?:\w{2,}er|first|more \w+|better|less \w+)\b.*\bor\b"),
        (
            0.7,
            rf"{_ANY}.*\b(?:or|and)\b.*{_ANY}.*\b(?:first|earlier|later|longer|shorter|older|newer|better)\b|"
            rf"\b(?:first|earlier|later|longer|shorter|older|newer|better|more \w+)\b.*{_ANY}.*\b(?:or|and)\b.*{_ANY}",
        ),
        (0.8, rf"{_ANY}.*\b(?:\w{{2,}}er|more \w+|less \w+|better|worse)\b.*\bthan\b.*{_ANY}"),
        (0.75, rf"{_ANY}.*\b(?:before|after|as \w+ as)\b\s*{_ANY}"),
        (0.95, r"对比|对照|异同|孰|区别|差别|差异|相同点|不同点|不同之处|共同点|共同之处"),
        (0.9, rf"(?:^|请|帮我|来)比较|比较一?下|{_ANY}.*比较|相比|比起"),
        (0.85, rf"{_ANY}.*{_ANY}.*(?:不同|相似|一样|相同|vs)"),
        (
            0.9,
            r"(?:哪(?:一?(?:个|部|位|本))?|谁)[^，。？?]{0,6}(?:更|比较|最)?(?:早|晚|长|短|新|旧|老|先|后|好看?|成功|受欢迎)",
        ),
        (0.85, rf"{_ANY}\W?(?:比|跟|和|与)\W?{_ANY}\W?[^，。]{{0,6}}(?:更|早|晚|长|短)"),
    ),
    *_cues(
        "recommend",
        (0.95, r"\brecommend|\bsuggest"),
        (0.9, r"\bsimilar\b.*\bto\b|\bsimilar (?:films?|movies?|ones?)|\b(?:in the (?:style|vein|spirit)|reminiscent) of\b"),
        (0.9, rf"\b(?:{FILM_EN}|something|anything|ones?|more|else|stuff)\b[^.?!]{{0,24}}\b(?:just )?like\b"),
        (0.85, r"\b(?:something|anything|what|movie|film|one)\b.{0,20}\b(?:to|should i|should we|can i|can we|could i) (?:watch|see)\b"),
        (0.8, r"\b(?:worth (?:watching|seeing)|in the mood for|must[- ]see|looking for|feel like watching|movie night)\b"),
        (0.75, r"\bi(?:'d|’d| would)? (?:want|like|love)(?: to)? (?:watch|see)\b|\bif i (?:like|liked|love|loved|enjoy|enjoyed)\b"),
        (0.75, r"\b(?:i|we) (?:like|liked|love|loved|enjoyed)\b|\bfans? of\b"),
        (0.65, rf"\b(?:good|great|best|nice|fun|top)\b(?: \w+){{0,3}} {FILM_EN}"),
        (0.95, r"推荐|推薦|安利|求片|荐片"),
        (0.85, r"类似|相似的|同类|同类型|差不多的|相近的"),
        (0.85, r"(?:像|跟|和|与).{1,20}(?:一样|那样|这样|这种|那种|似的|一类|之类)的?"),
        (0.8, r"好看|值得[一]?看|值得推荐|想看|想找|看(?:点|些|部)?(?:什么|啥)|必看|不错的|经典的"),
        (0.6, r"喜欢"),
    ),
    *_cues(
        "person",
        (0.95, rf"\bwho(?:'s|’s| is| was| are|se)\s+(?:the )?(?:\w+ )?{PERSON}{_NOT_POSSESSIVE}"),
        (0.85, rf"\bwho(?:'s|’s| is| was)\s+{OTHER}{_NOT_POSSESSIVE}"),
        (
            0.92,
            rf"\b(?:tell me|talk|know|learn|info|information|anything|something|more|read)\b[^.?!]{{0,16}}\b(?:about|on)\s+"
            rf"(?:the )?(?:\w+ )?{PERSON}{_NOT_POSSESSIVE}",
        ),
        (0.88, rf"\b(?:introduce|describe|profile|biography|bio|life|career|background|summary|portrait)\b[^.?!]{{0,12}}{PERSON}"),
        (0.88, rf"{PERSON}['’]s (?:\w+ )?(?:career|biography|life|background|bio)\b|\bwhat is {PERSON} known for"),
        (0.92, rf"\bwhat is {PERSON} (?:known|famous) for|\bwhat kind of (?:director|filmmaker|actor) is {PERSON}"),
        (0.75, rf"^\W*{PERSON}\W*$"),
        (0.95, rf"{_ANY}(?:到底|究竟)?(?:是|系)(?:什么人|谁|何许人|哪位|个?什么样的|怎样的|一?[位个]怎)"),
        (0.95, rf"谁是(?:导演|演员)?{_ANY}(?!的)"),
        (
            0.93,
            rf"(?:介绍|说说|说一说|讲讲|聊聊|谈谈|了解|认识|简介|科普|讲一讲|聊一聊)(?:一下|下|一点|些)?(?:关于)?(?:导演|演员|影星)?{PERSON}(?!的(?!生平|经历))",
        ),
        (0.9, rf"{PERSON}的?(?:这个人|其人|生平|简介|经历|履历|资料|职业生涯|个人|背景|介绍)"),
    ),
    *_cues(
        "list",
        (0.85, r"^(?:please |can you |could you |now )*(?:list|enumerate|name|show(?: me)?|give me)\b|\blist of\b|\bfilmography\b"),
        (0.7, rf"\b(?:all|every|each)\b(?: [\w'’{PERSON}{OTHER}]+){{0,5}} {FILM_EN}"),
        (0.85, rf"\b(?:which|what)\b(?: [\w'’&-]+){{0,4}} {FILMS_EN}\b"),
        (0.85, rf"\bhow many\b(?: [\w'’{PERSON}{OTHER}-]+){{0,4}} {FILMS_EN}\b"),
        (0.85, rf"\bwhat (?:else )?(?:has|have|had|did|does)\s+(?:{_ANY}|he|she|they) (?:ever |also )?(?:direct|ma[dk]e|star|appear|act|shoot|shot)"),
        (0.65, rf"\b(?:are there|is there|do you (?:have|know)|have you got)\b.*\b{FILM_EN}\b"),
        (0.5, rf"\b{FILMS_EN}\b[^?]*\b(?:by|of|from|directed|starring|with|after|before|since|in|between|about|set)\b"),
        (0.55, rf"{PERSON}(?:['’]s)? (?:\w+ ){{0,2}}{FILMS_EN}\b|^\W*(?:\w+ ){{0,3}}{FILMS_EN}\W*$"),
        (0.9, r"列出|列举|罗列|列一下|枚举|盘点|列表|清单"),
        (0.85, rf"(?:哪些|哪几部|哪几个)[^，。？?]{{0,12}}{FILM_ZH}|{FILM_ZH}[^，。？?主演编]{{0,3}}(?:有哪些|有哪几部)"),
        (0.85, rf"(?:导|拍|演|执导|主演|出演|导演|拍摄|制作)(?:过|了)?(?:的)?(?:些)?(?:什么|哪些|哪几部|多少|几部)"),
        (0.6, rf"(?:有|是)(?:些)?(?:什么|没有)[^，。？?]{{0,10}}{FILM_ZH}|(?:什么|哪些)(?:{FILM_ZH})"),
        (0.8, rf"多少部|有几部|几部[^，。？?]{{0,6}}{FILM_ZH}"),
        (0.6, rf"(?:所有|全部|每一?部)[^，。？?]{{0,12}}{FILM_ZH}?"),
        (0.6, rf"的(?:全部|所有)?{FILM_ZH}\W*$|^\W*[\u4e00-\u9fff]{{2,4}}片\W*$"),
    ),
    *_cues(
        "qa",
        (0.6, r"\b(?:when|who|whom|whose|where|why|how)\b"),
        (0.45, r"\b(?:what|which)\b"),
        (0.5, r"\b(?:what|which) year\b|\bin what\b|\bhow (?:long|much|old|far)\b"),
        (0.55, r"^\W*(?:is|was|are|were|did|does|do|has|have|had|can|could)\b"),
        (0.5, r"^\W*(?:tell me|explain|describe|summari[sz]e|give me|what happens)\b|\bplot of\b|\b(?:synopsis|storyline)\b"),
        (0.4, r"\b(?:release[ds]?|runtime|running time|cast|director|directed|plot|genre|country|budget|year|based on|set in)\b"),
        (0.75, r"哪一?年|何时|何年|什么时候|几几年|哪天|哪一天|哪个国家|哪国|哪里|哪儿|在哪|何处"),
        (0.6, r"谁|哪位|何人|哪部|哪一部|哪个"),
        (0.5, r"什么|啥|多少|多长|多久|几(?:分钟|岁|个|次)|为什么|为何|怎么|如何|是不是|是否|有没有|吗\W*$|哪些"),
        (0.4, r"讲了|讲的|讲述|剧情|情节|故事|主演|导演是|上映|片长|类型|改编|简介|介绍|解释|说明|总结"),
        (0.5, rf"^\W*{OTHER}\W*$"),
    ),
]

_ORDER: tuple[QueryIntent, ...] = ("compare", "recommend", "person", "list", "qa")
_LEAST = 0.3


def detect_intent(message: str, names: Sequence[Named]) -> tuple[QueryIntent, float, str]:
    """Intent, confidence 0 to 1 and the reason, from the cues in the message and the names that it holds.

    >>> detect_intent("Recommend something to watch", [])[:2]
    ('recommend', 0.95)
    """
    masked = mask(message, names)
    strengths, reasons = _strengths(masked, names)
    best = max(_ORDER, key=lambda intent: (strengths[intent], -_ORDER.index(intent)))
    rival = max(strengths[intent] for intent in _ORDER if intent != best)
    confidence = round(strengths[best] * (1 - 0.5 * rival), 2)
    if strengths[best] < _LEAST:
        return "unknown", confidence, "no cue of a known kind of question"
    return best, confidence, f"{best}: " + ", ".join(f"“{reason}”" for reason in reasons[best])


def _strengths(masked: str, names: Sequence[Named]) -> tuple[dict[QueryIntent, float], dict[QueryIntent, list[str]]]:
    doubts = dict.fromkeys(_ORDER, 1.0)
    reasons: dict[QueryIntent, list[str]] = {intent: [] for intent in _ORDER}
    persons = sum(is_person(named) for named in names)
    signs = {PERSON: "a person", OTHER: "a name"}
    for cue in CUES:
        match = cue.pattern.search(masked)
        if match:
            doubts[cue.intent] *= 1 - cue.weight
            reasons[cue.intent].append(re.sub(_ANY, lambda m: signs[m.group()], match.group()).strip())
    if names and not persons:
        doubts["qa"] *= 0.8  # a title is asked about
        reasons["qa"].append("a name")
    strengths = {intent: 1 - doubt for intent, doubt in doubts.items()}
    if strengths["compare"] and len(names) < 2 and not re.search(r"\bcompar|对比|比较一?下", masked):
        strengths["compare"] *= 0.6  # there are not two sides
    if max(strengths["compare"], strengths["recommend"], strengths["person"], strengths["list"]) >= 0.6:
        strengths["qa"] *= 0.5  # "what", "which" and "who" begin every kind of question
    if max(strengths["compare"], strengths["recommend"], strengths["person"]) >= 0.75:
        strengths["list"] *= 0.7  # "which films are similar to ..." is not answered by a list of all films
    return strengths, reasons


_SMALLTALK = re.compile(
    r"""(?:
      (?:hi|hello|hey|hiya|howdy|yo|greetings|good\ (?:morning|afternoon|evening|night|day)|morning|evening)(?:\ (?:there|all|everyone|you|again|workbench|bot|friend))?
    | how(?:\ a|')?re?\ (?:are\ )?(?:you|u|things|it\ going)(?:\ (?:doing|today|going))* | how\ (?:is|'s)\ it\ going | what'?s\ up | nice\ to\ meet\ you
    | (?:many\ )?thanks?(?:\ (?:you|a\ lot|so\ much|very\ much|again|for\ (?:your|the)\ help))* | thx | ty | cheers | much\ appreciated | (?:that'?s\ )?(?:great|perfect|awesome|cool|nice|ok|okay|fine|good)
    | (?:good\ ?)?bye(?:\ bye)? | see\ (?:you|ya)(?:\ (?:later|soon|tomorrow))? | take\ care | farewell | later
    | who\ are\ you | what\ are\ you | what(?:'s|\ is)\ your\ name | what\ can\ you\ do(?:\ for\ me)? | (?:can|could)\ you\ help(?:\ me)? | how\ do\ you\ work | are\ you\ (?:a\ )?(?:bot|human|robot|ai|an\ ai) | help(?:\ me)?
    | 你好[啊呀吗]? | 您好[啊呀]? | 大家好 | 哈[喽啰罗] | 嗨 | 嘿 | 喂 | 早 | 早上好 | 上午好 | 中午好 | 下午好 | 晚上好 | 早安 | 晚安 | 在吗 | 在不在 | 你?最近怎么样 | 你好不好 | 吃了吗
    | (?:非常|多|太|十分)?(?:感谢|谢谢|多谢|谢啦|谢了|辛苦)(?:你|您|了|啦|啊|你的帮助|您的帮助)* | 再见 | 拜拜?[啦了]? | 回头见 | 明天见 | 下次见 | 好的? | 好吧 | 嗯+ | 行 | 知道了 | 明白了 | 不错 | 太好了 | 很好 | 没事了?
    | (?:请问)?[你您]是(?:谁|什么|哪位|机器人吗?|人吗|ai吗?|做什么的|干什么的) | [你您]叫(?:什么|啥)(?:名字)? | [你您](?:能|会|可以)(?:做|干|帮我做|帮我干)?(?:什么|啥|些什么|哪些事)? | 介绍一下你?自?己? | 自我介绍(?:一下)? | 帮帮我 | [你您](?:有)?什么功能
    )""",
    re.VERBOSE,
)


def is_smalltalk(message: str) -> bool:
    """Whether the message is nothing but a greeting, thanks, a farewell or a question about who answers.

    >>> [is_smalltalk(m) for m in ("Hello there!", "你好，你是谁？", "Hello, who directed Inception?", "再推荐几部")]
    [True, True, False, False]
    """
    parts = [part.strip() for part in re.split(r"[\W_]*[,.!?;:，。！？；：~～、\n…]+[\W_]*", message.lower().replace("’", "'"))]
    said = [re.sub(r"[^\w\s']", "", part).strip() for part in parts]
    said = [part for part in said if part]
    return bool(said) and all(_SMALLTALK.fullmatch(part) for part in said)


_MEDIA: list[tuple[str, str]] = [
    ("series", r"\b(?:tv|television|web)?\s?(?:series|shows?|sitcoms?)\b|电视剧|剧集|连续剧|美剧|网剧"),
    ("documentary", r"\bdocumentar(?:y|ies)\b|纪录片"),
    ("short", r"\bshort films?\b|短片"),
    ("animation", r"\b(?:animations?|anime|cartoons?|animated)\b|动画|动漫"),
    ("film", r"\b(?:films?|movies?|cinema|biopics?|comedies|thrillers?|westerns?)\b|电影|影片|片子|[\u4e00-\u9fff]片(?!段|面|刻|名)"),
]


def media_type(message: str, names: Sequence[Named] = ()) -> str:
    """``series``, ``documentary``, ``short``, ``animation``, ``film`` or ``""``: what kind of work is spoken of.

    >>> media_type("Any good TV shows?"), media_type("有什么好看的科幻片"), media_type("Who is Ang Lee?")
    ('series', 'film', '')
    """
    masked = mask(message, names)
    for media, pattern in _MEDIA:
        if re.search(pattern, masked):
            return media
    return "film" if any(named["type"] == "film" for named in names) else ""


assert set(_ORDER) | {"unknown"} == set(get_args(QueryIntent))
