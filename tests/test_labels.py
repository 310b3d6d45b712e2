"""Words that people read: there in both languages, and on every surface of one language alone."""

import re
import tomllib
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import ipywidgets
import pytest

import workbench
from tests.cases import tables
from tests.shelves import fill
from workbench.session import Workbench
from workbench.text import CJK
from workbench.views.labels import catalogue
from workbench.views.outline import ON_PAPER, run_html, run_text

ENGLISH, CHINESE = catalogue("en"), catalogue("zh")
PACKAGE = Path(workbench.__file__).parent


def test_both_languages_have_the_same_keys_and_take_the_same_values() -> None:
    assert set(ENGLISH) == set(CHINESE)
    for language in ("en", "zh"):
        subjects = tomllib.loads((PACKAGE / "views" / "labels" / f"{language}.toml").read_text(encoding="utf-8"))
        assert sum(map(len, subjects.values())) == len(catalogue(language)), f"a word is given twice in {language}"
    for key, english in ENGLISH.items():
        assert english and CHINESE[key], key
        if key.startswith("problem_"):  # the English of a problem is its own text
            continue
        assert set(re.findall(r"{(\w+)", english)) == set(re.findall(r"{(\w+)", CHINESE[key])), key
    same = {re.sub(r"{\w+}", "", words) for key, words in ENGLISH.items() if words == CHINESE[key]}
    assert not [text for text in same if re.search("[a-z]{3}", text)]


SHELF = tables("labels", end="\n")
QUESTIONS = {"en": "Compare the lighthouse and the ferry", "zh": "对比灯塔和渡船"}
PARTS = ("data", "annotations")
SAID_IN_ENGLISH = {words for key, words in ENGLISH.items() if words != CHINESE[key] and len(words) > 3}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.few(1)
def test_every_surface_speaks_one_language_and_counts(tmp_path: Path, language: str) -> None:
    with Workbench.open(tmp_path / "workspace") as wb:
        fill(wb, dict(SHELF[language]), "1")
        faults = {
            line: name for name, shown in surfaces(language, wb) for line in lines(shown) if wrong(line, language)
        }
    assert not faults, "\n".join(f"{name}: {line}" for line, name in faults.items())


def wrong(line: str, language: str) -> bool:
    """Whether nobody should read this."""
    line = unescape(line)
    if re.match(r"\s*[。，、；：？！,;?!]", line):
        return True
    if language == "en":
        return bool(CJK.search(line) or re.search(r"(?<![\w.,:/#<-])1 (?!ms\b|is\b|was\b)[a-z]+s\b", line))
    return line.strip() in SAID_IN_ENGLISH


def surfaces(language: str, wb: Workbench) -> Iterator[tuple[str, Any]]:
    """Everything that shows a run, while it waits and when it is done, and what is made of it."""
    run = wb.ask(QUESTIONS[language], kb="1", review=["plan", "reflect"])
    for point in ("plan", "reflect"):
        yield f"bench at {point}", wb.bench(run)
        yield f"inbox at {point}", wb.inbox(lang=language)
        yield f"page at {point}", run_html(run.to_dict())
        run.approve()
    while run.status == "paused":
        run.reject("x1")
    yield "bench", wb.bench(run)
    yield from (("page", run_html(run.to_dict())), ("text", run_text(run.to_dict(), parts=ON_PAPER)))
    fork = run.fork(plan=run.plan.without(run.plan.steps[-1].step_id), settings={"max_iterations": 1})
    again = run.fork(decision={"action": "reject"}, at="1-reflect")
    for made in (wb.compare(run, fork), wb.compare(run, fork, again)):
        yield "text", str(made)
        yield "page", made._repr_html_()
    yield from (("figure", drawing.svg) for drawing in (run.dag(), run.timeline(), run.graph(), run.knowledge()))


def lines(shown: Any) -> Iterator[str]:
    if isinstance(shown, str) and "<" in shown:
        shown = re.sub(r"<style.*?</style>", "", shown, flags=re.S)
        named = re.findall(r'(?:title|aria-label|aria-valuetext|placeholder)="([^"]*)"', shown)
        text = re.sub(r"</?(?:button|summary|b|i|code|span|a|em|svg|path|circle)\b[^>]*>", "", shown)
        yield from unescape("\n".join([*named, re.sub(r"<[^>]*>", "\n", text)])).splitlines()
    elif isinstance(shown, str):
        yield from shown.splitlines()
    elif isinstance(shown, ipywidgets.Widget):
        said = ["description", "placeholder", "tooltip", "html"]
        said += ["value"] if isinstance(shown, ipywidgets.HTML) else []
        for value in (getattr(shown, name, None) for name in said):
            yield from lines(value) if isinstance(value, str) else ()
        yield from map(str, getattr(shown, "_options_labels", ()))
        for child in getattr(shown, "children", ()):
            yield from lines(child)
    elif isinstance(shown, dict):
        for name, value in shown.items():
            if name in ("text", "name", "hovertext", "ticktext") or isinstance(value, dict) or name in PARTS:
                yield from lines(value)
    elif isinstance(shown, list | tuple):
        for value in shown:
            yield from lines(value)
