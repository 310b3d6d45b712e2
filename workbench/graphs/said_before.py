"""What is answered from the conversation alone: what was said before, and that something was noted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from workbench.graphs.remember import TAKEN_BACK
from workbench.language.question import is_small_talk
from workbench.language.statements import read_statements
from workbench.state import Asked, Noted
from workbench.text import STOP_WORDS, fold, sentences, terms

_MOST, _LONGEST, _NEAR = 3, 300, 0.5
"""Turns that are quoted; characters of one; how near an exchange must be that shares no word with the question."""


class Turn(NamedTuple):
    """One message: who said it, when, and what."""

    role: str
    at: str
    text: str


def acknowledged(noted: Sequence[Noted], zh: bool, user: str = "default") -> str:
    """That what a message says of the person is remembered, in their own words; or that it does not hold any more."""
    told = ("；" if zh else "; ").join(note["content"].rstrip(" .。！!") for note in noted)
    if gone := [one for note in noted if note["section"] == TAKEN_BACK for one in note["replaces"]]:
        whose = "" if user == "default" else f", user={user!r}"
        erase = ", ".join(f"wb.memory.forget({one!r}{whose})" for one in gone)
        if zh:
            return f"不再采用：{told}。它还留在历史里；要彻底删除：{erase}。"
        return f"No longer held: {told}. It stays in the history; to erase it everywhere: {erase}."
    return f"记住了：{told}。" if zh else f"Noted: {told}."


def from_conversation(asked: Asked, state: Mapping[str, Any], zh: bool) -> str:
    """What was said, quoted with its day, the newest first; that nothing was, where nothing is found.

    Earlier questions of this kind, and their answers, say nothing of it: they are passed over, unless asked by place.
    """
    if named := _called(asked, state):
        return _quoted(named, zh)
    recalled = [e for e in state.get("recalled_episodes") or [] if not _asks_back(e["user_message"])]
    turns = [t for t in _turns(state, asked) if not asked["whose"] or t.role == asked["whose"]]
    if asked["which"]:
        found = _placed(turns, asked)
    elif wanted := set(terms(asked["about"])) - STOP_WORDS:
        found = _about(turns, asked["about"], wanted)
    else:
        found = [t for e in recalled for t in _sides(e) if t in turns][:_MOST]
    if not found:
        near = [e for e in recalled if e["similarity"] >= _NEAR and not is_small_talk(e["user_message"])]
        sides = [(asked["whose"] or "user", e) for e in near[:_MOST]]
        found = [Turn(role, e["created_at"], e[f"{role}_message"]) for role, e in sides]
    if not found:
        about = asked["about"]
        if zh:
            return f"在这段对话里没有找到关于“{about}”的内容。" if about else "在这段对话里没有找到。"
        return f"Nothing in this conversation is about “{about}”." if about else "Nothing of that kind was said here."
    return "\n".join(_quoted(turn, zh) for turn in found)


def _called(asked: Asked, state: Mapping[str, Any]) -> Turn | None:
    """The name of the person, where that is asked for: in whatever language it was said."""
    known = [m for m in state.get("known") or [] if m["section"] == "name"]
    if not known or asked["whose"] == "assistant" or not re.fullmatch(r"(?i)(?:user)?name|名字|姓名", asked["about"]):
        return None
    return Turn("user", known[-1]["created_at"], known[-1]["content"])


def _turns(state: Mapping[str, Any], asked: Asked) -> Iterator[Turn]:
    """What was recalled, oldest first: the beginning of the conversation where that is asked for, exchanges, window."""
    seen: set[str] = set()
    told = _told(state.get("opening") or []) if asked["which"] else []
    for episode in sorted(state.get("recalled_episodes") or [], key=lambda e: e["created_at"]):
        told += _sides(episode)
    told += _told(state.get("history") or [])
    passed = False
    for turn in told:
        passed = _asks_back(turn.text) if turn.role == "user" else passed
        if turn.text not in seen and (asked["which"] or not passed):
            seen.add(turn.text)
            yield turn


def _told(messages: Iterable[Mapping[str, Any]]) -> list[Turn]:
    return [Turn(m["role"], m["created_at"], m["content"]) for m in messages]


def _sides(episode: Mapping[str, Any]) -> list[Turn]:
    return [Turn(role, episode["created_at"], episode[f"{role}_message"]) for role in ("user", "assistant")]


@lru_cache(maxsize=512)
def _asks_back(text: str) -> bool:
    """Whether a message asks what was said before."""
    return bool(read_statements(text).recalls)


def _placed(turns: Sequence[Turn], asked: Asked) -> list[Turn]:
    """The first, the last, the third of all turns; of the questions among them, where a question is meant."""
    which = asked["which"]
    if re.search(r"(?i)question|问", asked["about"]):
        turns = [t for t in turns if re.search(r"[?？]\W*$|[吗呢]\W*$", t.text)] or turns
    place = {"first": 0, "last": -1}.get(which, int(which) - 1 if which.isdecimal() else 0)
    return [turns[place]] if turns and -1 <= place < len(turns) else []


def _about(turns: Sequence[Turn], about: str, wanted: set[str]) -> list[Turn]:
    """The turns of which a sentence has most of the words asked for, of those that have as many the newest first."""
    scored = []
    for number, turn in enumerate(turns):
        best = max(sentences(turn.text) or [turn.text], key=lambda s: len(wanted & set(terms(s))))
        share = len(wanted & set(terms(best))) / len(wanted)
        if share > 0.5 or fold(about) in fold(turn.text):
            scored.append((-share, -number, turn._replace(text=best)))
    return [turn for _, _, turn in sorted(scored)[:_MOST]]


def _quoted(turn: Turn, zh: bool) -> str:
    text = re.sub(r"\s?\[\d+\]", "", " ".join(turn.text.split()))
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    day = turn.at[:10]
    if zh:
        return f"{'你' if turn.role == 'user' else '我'}在 {day} 说过：“{text}”"
    return f"{'You' if turn.role == 'user' else 'I'} said on {day}: “{text}”"
