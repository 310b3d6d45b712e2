"""Read a message: what it says plainly about the person, and what it asks of memory; and answer that from memory alone.

Likes, dislikes, a name, and what is to be remembered are read by closed patterns, in English and Chinese. Anything else
that people say of themselves is kept by a model, by the person (``wb.memory``) or by a tool, or not at all. What is
liked and disliked narrows what is recommended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from workbench.language.question import read
from workbench.language.words import is_small_talk
from workbench.ports import Bases
from workbench.state import Data, MemoryQuestion, Noted, RouteDecision
from workbench.text import (
    CJK,
    STOP_WORDS,
    closest,
    content_stems,
    fold,
    sentences,
    stem,
    terms,
    unmarked,
)
from workbench.views.labels import Labels
from workbench.views.markup import cut

if TYPE_CHECKING:
    from workbench.parts.memory.store import Memory


SINGLE = ("persona", "name", "current_intent")
"""Sections that hold one memory: a new one takes the place of the one before."""


_LEAD = re.compile(
    r"(?:(?:well|ok|oh|hi|hello|actually|also|and|but|please)\b|其实|不过|另外|请|你好|[\s,，])*",
    re.I,
)
_CUT = re.compile(
    r"(?:[,;]| but|,? and) (?=(?:i|my|recommend|suggest|show|list|give|find|tell|please|remember|what|which|who)\b)"
    r"|(?<!记住)[;；，,](?=(?:请|你|帮我)*记住|[请给帮推有哪谁那换我])",
    re.I,
)
IS_QUESTION = re.compile(r"[?？]\W*$|什么|谁|哪|怎|几|多少|[吗呢]\W*$")
_OFTEN = r"(?:really |also |just |now |still |quite )*"
_OFTEN_ZH = "(?:真的?|很|也|还|现在|最|特别|非常|更|都)*"
_LIKES = {
    "dislike": rf"i {_OFTEN}(?:(?:do not|don't|does not|doesn't) (?:really )?(?:like|love|enjoy)|hates?|dislikes?) (.+)"
    rf"|我?{_OFTEN_ZH}(?:不(?:再|太|大|怎么)?(?:喜欢|爱)|讨厌)(?!的)(.+)",
    "like": rf"i {_OFTEN}(?:likes?|loves?|enjoys?) (.+)|(?:我{_OFTEN_ZH}(?:喜欢|爱)|喜欢)(?!的)(.+)",
}
_PRONOUN = re.compile(
    r"(?:it|that|this|them|you|him|her|these|those|how|when|what|if)\b|[这那你您它他她]", re.I
)
_TAIL = re.compile(
    r"(?: (?:any ?more|now|at all|either|too|very much|so much|a lot))+$|(?:了|啊|呀)+$", re.I
)
_NAME = re.compile(
    r"(?i:call me|my name is|my name's) ([A-Z]\S*(?: [A-Z]\S*){0,3})|(?:叫我|我叫|我的名字[是叫])([^\W了]{1,4})"
)
_REMEMBER = re.compile(
    r"(?:remember|note)(?: that|:) (.+)|remember ((?:i|i'm|my|we|our)\b.+)|(?:你|帮我|要)*记住[，,：:]?(.+)",
    re.I,
)


def read_preferences(message: str) -> tuple[list[Noted], str]:
    """Return what a message states of the person, and what of it remains to be answered.

    >>> notes, rest = read_preferences("I don't like brass bands, recommend something else.")
    >>> notes[0]["about"], notes[0]["polarity"], rest
    ('brass bands', 'dislike', 'recommend something else.')
    >>> [(note["section"], note["about"]) for note in read_preferences("我叫小安，记住我住在成都。")[0]]
    [('name', '小安'), ('facts', '我住在成都')]
    """
    # Characters of a message: whatever is longer was pasted.
    longest = 2_000
    notes = []
    rest = []
    parts = [part for sentence in sentences(message) for part in _CUT.split(sentence)]
    for clause in parts if len(message) <= longest else []:
        plain = _LEAD.sub("", clause.replace("’", "'"), count=1).strip(" ,，.。!！;；\n")
        # A longer clause was pasted.
        note = None if IS_QUESTION.search(clause) or len(plain) > 200 else _read(plain)
        if note:
            notes.append(note)
        elif plain:
            rest.append(clause.strip())
    if not notes:
        return [], message
    left = " ".join(rest)
    return notes, "" if is_small_talk(left) else left


def _read(clause: str) -> Noted | None:
    match = _REMEMBER.fullmatch(clause)
    if not match:
        if re.match(r"i\b|my\b|call me\b|叫?我|不?喜欢|讨厌", clause, re.I):
            return read_note(clause)
        return None
    content = next(filter(None, match.groups())).strip()
    return read_note(content) or _note("facts", content, content)


def _note(section: str, content: str, about: str, polarity: str = "") -> Noted:
    return Noted(section=section, content=content, about=about, polarity=polarity, replaces=[])


def read_note(text: str) -> Noted | None:
    """Return the preference or the name in a note, with or without "I"; None for any other note."""
    for polarity, pattern in _LIKES.items():
        subject = "" if re.match(r"i\b", text, re.I) or CJK.search(text) else "I "
        match = re.fullmatch(pattern, subject + text, re.I)
        about = _TAIL.sub("", next(filter(None, match.groups()), "").strip()) if match else ""
        if about and len(about) <= 80 and not _PRONOUN.match(about):
            return _note("preferences", text, about, polarity)
    match = _NAME.fullmatch(text)
    return _note("name", text, match[1] or match[2]) if match else None


def apply_preferences(state: Data, decision: RouteDecision, bases: Bases) -> RouteDecision:
    """Return the decision on a recommendation with what the person likes and does not like as conditions.

    Each note is read behind the question. None counts about what the question itself speaks of, or that would leave
    nothing; what is liked, the newest alone, where the question asks for nothing in particular.
    """
    question = decision.get("question")
    if not question or question["intent"] != "recommend":
        return decision
    because = "（因为你说过：{}）" if question["language"] == "zh" else " (since you said: {})"
    text = fold(question["text"])
    open_to_likes = not (question["conditions"] or question["names"])
    for note in reversed(state.get("known", [])):
        op = {"dislike": "ne", "like": "eq" if open_to_likes else ""}.get(note["polarity"])
        if not op or fold(note["about"]) in text:
            continue
        both = read(f"{question['text'].rstrip(' .。')}. {note['content']}", bases)
        own = [
            c for c in both["conditions"] if c["op"] == op and fold(str(c["value"])) not in text
        ]
        conditions = [*question["conditions"], *own]
        if own and any(base.select(conditions) for base in bases):
            open_to_likes = open_to_likes and op == "ne"
            new = [line for line in both["understood"] if line not in question["understood"]]
            understood = [
                *question["understood"],
                *(line + because.format(note["content"]) for line in new),
            ]
            preferences = {**question.get("preferences", {}), note["id"]: new}
            question = {
                **question,
                "conditions": conditions,
                "understood": understood,
                "preferences": preferences,
            }
    return {**decision, "question": question, "filters": question["conditions"]}


def same_thing(new: Data, old: Data) -> bool:
    """Return whether two notes are about the same words, so that the newer takes the place of the older.

    >>> oolong = {"section": "preferences", "about": "oolong", "polarity": "like"}
    >>> [same_thing({**oolong, "about": about, "polarity": "dislike"}, oolong) for about in ("oolong tea", "tea")]
    [True, False]
    """
    if new["section"] != old["section"] or new["section"] in SINGLE:
        return new["section"] == old["section"]
    if new["section"] != "preferences":
        return fold(new["content"]) == fold(old["content"])
    short, long = sorted(
        ([stem(t) for t in terms(note["about"] or note["content"])] for note in (new, old)),
        key=len,
    )
    more = 2 if CJK.search(new["about"]) else 1  # "oolong" and "oolong tea", 乌龙 and 乌龙茶
    return long == short or (
        new["polarity"] != old["polarity"]
        and long[: len(short)] == short
        and len(long) <= len(short) + more
    )


# --- Which questions memory answers ---

MOST_NOTES, LONGEST, SHARE = 3, 300, 0.5
"""Notes of an answer; characters of a question or a quotation; the least share of the question's words in a note or an
exchange."""
_SPEAK = (
    "say|said|tell|told|mention(?:ed)?|ask(?:ed)?|recommend(?:ed)?|suggest(?:ed)?|discuss(?:ed)?"
)
_SPEAK_ZH = "说|问|提|讲|推荐|聊|告诉|谈"
_EARLIER = re.compile(
    rf"\b(?:did|have) (i|you|we) (?:just |already |ever )?(?:{_SPEAK})\b"
    rf"|\b(i|you|we)(?: have|'ve| had)? (?:just |already )?(?:said|told|mentioned|asked|recommended|suggested)\b"
    rf"|([我你])们?(?:刚才|刚刚|之前|先前)?(?:{_SPEAK_ZH})过|([我你])们?(?:刚才|刚刚|之前|先前)"
    r"|刚才|\bjust now\b|\b(?:i|my|you|your|we)\b.*\bearlier(?! than)",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\b(?:i|my|me)\b|我(?!们)", re.I)
_ASKS_NAME = re.compile(
    r"\bmy name\b|\bwho am i\b|我(?:的名字)?(?:叫|是)(?:什么|谁|啥)|我的?(?:名字|姓名)", re.I
)
_EVERYTHING = re.compile(
    r"\b(?:know|remember|noted|stored?) about me\b|关于我(?!们)|(?:了解|记得|知道)我(?:什么|哪些|多少)",
    re.I,
)
"""Everything noted is asked for."""
_LIKING = re.compile(
    r"\bdo(?: not|n't)? i (?:not )?(?:like|love|enjoy)\b|我不?(?:最|很)?(?:喜欢|爱)(?![^，；什哪谁]*[，；])",
    re.I,
)
"""A liking that is asked for; in Chinese not one that is stated in a clause before the question."""
_DISLIKING = re.compile(r"\bi not\b|n't i\b|\bi (?:hate|dislike)\b|我(?:不喜欢|讨厌|不爱)", re.I)
_OPEN = re.compile(r"^\W*(?:what|which|who)\b|什么|哪|谁", re.I)
_EMPTY = re.compile(
    rf"\b(?:{_SPEAK}|earlier|before|just|now|about|again|kind|sort|type|like|love|enjoy|hate|dislike|am|not|don't)\b"
    rf"|刚才|刚刚|之前|先前|{_SPEAK_ZH}|什么|哪[里儿个部些]?|谁|多少|几|类型|那[个部些]?|这[个部些]?|怎么|关于|喜欢|讨厌"
    r"|[我你他她们的了是在过吗呢啊不最有得到]",
    re.IGNORECASE,
)


def question_to_memory(message: str, notes: Sequence[Memory]) -> MemoryQuestion | None:
    """Return what a message asks of the conversation or of the notes; None where it is a question like any other.

    >>> asked = question_to_memory("What did I say about opera?", [])
    >>> asked["about"], asked["whose"], question_to_memory("What was agreed on 3 May?", [])
    ('opera', 'user', None)
    >>> question_to_memory("What do you know about me?", [])["notes"], question_to_memory("你了解我什么？", [])["notes"]
    ([], [])
    """
    plain = message.replace("’", "'")
    if len(message) > LONGEST or not IS_QUESTION.search(plain):
        return None
    if match := _EARLIER.search(plain):
        who = next(filter(None, match.groups()), "").lower()
        whose = {"i": "user", "我": "user", "you": "assistant", "你": "assistant"}.get(who, "")
        return MemoryQuestion(about=_about(plain), whose=whose, notes=None)
    if _EVERYTHING.search(plain):
        return MemoryQuestion(about="", whose="", notes=[note["id"] for note in reversed(notes)])
    fitting = _notes_for(plain, notes) if _PERSON.search(plain) else []
    if fitting or _ASKS_NAME.search(plain) or (_LIKING.search(plain) and _OPEN.search(plain)):
        return MemoryQuestion(
            about=_about(plain), whose="", notes=[note["id"] for note in fitting]
        )
    return None


def _about(message: str) -> str:
    """Return the words of a question that say what it is about."""
    words = [
        word
        for word in re.findall(r"[\w'-]+", _EMPTY.sub(" ", message))
        if fold(word) not in STOP_WORDS
    ]
    return " ".join(words)


def subject_stems(text: str, characters: bool = False) -> set[str]:
    """Return the stems of a text that say what it is about; of Chinese its characters, where these are compared."""
    spaced = CJK.sub(lambda match: f" {match[0]} ", text) if characters else text
    stems = content_stems(_EMPTY.sub(" ", spaced))
    # Letters of a stem that are compared.
    return {word[:6] for word in stems}


def _notes_for(message: str, notes: Sequence[Memory]) -> list[Memory]:
    """Return the notes that answer a question about the person, best first."""
    if _ASKS_NAME.search(message):
        return [note for note in notes if note["section"] == "name"][-1:]
    wanted = subject_stems(message, characters=True)
    newest = list(reversed(notes))
    liking = bool(_LIKING.search(message))
    if liking:
        newest = [note for note in newest if note["section"] == "preferences"]
    shared = {
        n["id"]: len(wanted & subject_stems(f"{n['content']} {n['about']}", characters=True))
        for n in newest
    }
    fitting = [n for n in newest if wanted and shared[n["id"]] / len(wanted) >= SHARE]
    if fitting or not liking or not _OPEN.search(message):
        return sorted(fitting, key=lambda n: -shared[n["id"]])[:1]
    polarity = "dislike" if _DISLIKING.search(message) else "like"
    return [note for note in newest if note["polarity"] == polarity][:MOST_NOTES]


# --- What is answered from memory alone: what was said, what is noted, and what was just noted ---


class _Exchange(NamedTuple):
    at: str
    user: str
    assistant: str
    similarity: float


def acknowledge(noted: Sequence[Noted], language: str, user: str) -> str:
    """Return what is noted of a message, and how to take it back."""
    labels = Labels(language)
    text = labels("semicolon").join(note["content"].rstrip(" .。！!") for note in noted)
    undo = f"wb.memory.undo({'' if user == 'default' else f'user={user!r}'})"
    return labels("ack_noted", text=text, undo=undo) if noted else ""


def answer_from_memory(request: MemoryQuestion, state: Data, language: str) -> str:
    """Return what was said or noted, quoted with its day; or that nothing was."""
    labels = Labels(language)
    about = request["about"]
    if request["notes"] is None:
        quotations = _from_conversation(request, state, labels)
        return "\n".join(quotations) or labels(
            "said_nothing_about" if about else "said_nothing", about=about
        )
    notes = {note["id"]: note for note in state.get("known") or []}
    quoted = [notes[note_id] for note_id in request["notes"] if note_id in notes]
    if quoted:
        return "\n".join(
            _quoted("user_say", note["created_at"], note["content"], labels) for note in quoted
        )
    return labels("noted_nothing") + (
        labels("noted_nothing_search", about=about) if about else ""
    )


def _from_conversation(request: MemoryQuestion, state: Data, labels: Labels) -> list[str]:
    """Quote the exchanges that have most of the words asked for, of equal ones the newest.

    The person's own question is never the answer to a question of what was said: then it is what answered it.
    """
    exchanges = _exchanges(state)
    wanted = subject_stems(request["about"])
    of_user = request["whose"] == "user"
    shares = {
        exchange: len(
            wanted
            & subject_stems(exchange.user if of_user else f"{exchange.user} {exchange.assistant}")
        )
        / (len(wanted) or 1)
        for exchange in exchanges
    }
    best = sorted(exchanges, key=lambda exchange: (shares[exchange], exchange.at), reverse=True)
    if wanted:
        # The similarity at which an exchange counts without sharing a word.
        best = [
            exchange
            for exchange in best
            if shares[exchange] >= SHARE or exchange.similarity >= 0.5
        ]
    statements = [
        exchange for exchange in best if of_user and not IS_QUESTION.search(exchange.user)
    ]
    count = MOST_NOTES if statements and wanted else 1
    return [
        _side(exchange, request["whose"], request["about"], labels)
        for exchange in (statements or best)[:count]
    ]


def _side(exchange: _Exchange, whose: str, about: str, labels: Labels) -> str:
    role = whose or (
        "assistant" if IS_QUESTION.search(exchange.user) and exchange.assistant else "user"
    )
    text = exchange.user if role == "user" else exchange.assistant
    best = closest(about or exchange.user, sentences(text)) or text
    verb = "ask" if role == "user" and IS_QUESTION.search(best) else "say"
    return _quoted(f"{role}_{verb}", exchange.at, best, labels)


def _exchanges(state: Data) -> list[_Exchange]:
    """Return the earlier exchanges that were recalled, oldest first; without those that asked what was said."""
    by_texts = {
        (episode["user_message"], episode["assistant_message"]): (
            episode["created_at"],
            episode["similarity"],
        )
        for episode in state.get("recalled_episodes") or []
    }
    for question, reply in pairwise(state.get("history") or []):
        if (question["role"], reply["role"]) == ("user", "assistant"):
            by_texts.setdefault(
                (question["content"], reply["content"]), (reply["created_at"], 0.0)
            )
    exchanges = [
        _Exchange(at, *texts, similarity) for texts, (at, similarity) in by_texts.items()
    ]
    ordinary = [
        e for e in exchanges if not is_small_talk(e.user) and not question_to_memory(e.user, [])
    ]
    return sorted(ordinary, key=lambda exchange: exchange.at)


def _quoted(who: str, at: str, text: str, labels: Labels) -> str:
    quoted = cut(unmarked(" ".join(text.split())), LONGEST)
    return labels(f"quoted_{who}", day=at[:10], text=quoted)
