"""Say a question again so that a search finds more: less filler, other names and languages, words of the evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from workbench.state import RetrievalResult
from workbench.text import CJK, fold, terms

FILLER = frozenset(
    terms(
        "a about all am an and any are as at be been but by can could did do does find for from give "
        "had has have he her him his how i in is it its know like list  many me my name of on or other "
        "please recommend say she show similar some suggest tell than that the their them there these they this "
        "those to want was we were what when where which who whom whose why will with would you your compare "
        "between difference "
    )
)
"""English words that steer a question and name nothing that a passage would say."""

_FILLER_ZH = re.compile(
    "请问|请|帮我|给我|我想|想看|想找|知道|告诉我|推荐|介绍一下|介绍|列出|有哪些|哪些|哪一年|哪年|哪一部|哪部|什么时候|什么样|什么|"
    "怎么样|怎么|为什么|是谁|谁|几部|一些|一部|一下|类似|相似|对比|比较|区别|风格|之间|关于|[的了吗呢啊吧么]"
)
FEEDBACK_TERMS = 5
FEEDBACK_PIECES = 5
FEEDBACK_SCORE = 0.4
"""Evidence below this score says more about the index than about the question: its words would lead away."""
FEEDBACK_RARITY = (0.3, 0.8)
"""Commoner terms find everything; rarer ones are mostly names, and find one document."""


def rewritten(
    query: str,
    aliases: Sequence[str],
    evidence: Sequence[RetrievalResult],
    rarity: Callable[[str], float],
    works: Collection[str] = (),
) -> str:
    """By rules: the words that carry the question, other names and languages for them, words of the best evidence.

    Args:
        query: the question.
        aliases: every writing of the names in it, in either language.
        evidence: what was found so far, best first.
        rarity: of a term, 0 (everywhere) to 1 (in one passage).
        works: what the corpus calls its documents, which every question may say.

    >>> rewritten("茶馆的作者是谁？", ["茶馆", "Teahouse"], [], lambda term: 0.5)
    '茶馆 作者 Teahouse'
    >>> rewritten("What is it about time travel?", [], [], lambda term: 0.5)
    'time travel'
    """
    core = essence(query, aliases, works)
    said = fold(core)
    extra = [alias for alias in dict.fromkeys(aliases) if fold(alias) not in said]
    return " ".join([core, *extra, *feedback(" ".join([core, *extra]), evidence, rarity)]).strip()


def essence(query: str, names: Iterable[str] = (), works: Collection[str] = ()) -> str:
    """The query without filler; the names in it stay whole.

    >>> essence("推荐几部类似《茶馆》的"), essence("Which play is like The Thing?", ["The Thing"], ["play"])
    ('茶馆', 'The Thing')
    """
    kept = sorted(
        {n for n in names if n and n.lower() in query.lower()} | set(re.findall("《([^》]+)》", query)), key=len
    )
    pattern = "|".join(re.escape(name) for name in reversed(kept))
    pieces = re.split(f"({pattern})", query, flags=re.IGNORECASE) if pattern else [query]
    words: list[str] = []
    for index, piece in enumerate(pieces):
        words += [piece.strip()] if index % 2 else _content(piece, works)
    return " ".join(dict.fromkeys(filter(None, words)))


def _content(text: str, works: Collection[str]) -> list[str]:
    if CJK.search(text):
        text = _FILLER_ZH.sub(" ", text)
    found = re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)
    return [word for word in found if word.lower() not in FILLER and word.lower() not in works]


def feedback(query: str, evidence: Sequence[RetrievalResult], rarity: Callable[[str], float]) -> list[str]:
    """Terms that the best evidence shares and the query lacks (pseudo-relevance feedback), by weight, ties by term.

    Only a term that two of the best pieces say counts, and no name: what one piece has is not about the question.
    """
    best = [result["evidence"] for result in evidence[:FEEDBACK_PIECES] if result["score"] >= FEEDBACK_SCORE]
    present, names = set(terms(query)), _names(best)
    pieces = Counter(term for text in best for term in set(terms(text)))
    low, high = FEEDBACK_RARITY
    worth = {
        term: count * rarity(term)
        for term, count in pieces.items()
        if count > 1 and term not in present | names | FILLER and (len(term) > 2 or CJK.match(term))
    }
    kept = [term for term, count in pieces.items() if term in worth and low <= worth[term] / count <= high]
    return sorted(kept, key=lambda term: (-worth[term], term))[:FEEDBACK_TERMS]


def _names(texts: Iterable[str]) -> set[str]:
    """Latin terms that the texts write with a capital only."""
    words = re.findall(r"[A-Za-z]+", " ".join(texts))
    return {word.lower() for word in words if word[0].isupper()} - {word for word in words if word[0].islower()}
