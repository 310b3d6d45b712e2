"""Every word is there in both languages, once, with the same values in it, and shown somewhere."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import workbench
from workbench.views.labels import catalogue

OF_CORPORA = ("rel_", "type_")
"""Words for types of relations and entities that corpora share; they are put together where they are shown."""
ENGLISH, CHINESE = catalogue("en"), catalogue("zh")
PACKAGE = Path(workbench.__file__).parent


def test_no_word_is_given_twice() -> None:
    for language in ("en", "zh"):
        subjects = tomllib.loads((PACKAGE / "views" / "labels" / f"{language}.toml").read_text(encoding="utf-8"))
        assert sum(map(len, subjects.values())) == len(catalogue(language)), language


def test_both_languages_have_the_same_keys_and_take_the_same_values() -> None:
    assert set(ENGLISH) == set(CHINESE)
    for key, english in ENGLISH.items():
        assert english and CHINESE[key], key
        if key.startswith("problem_"):  # the English of a problem is its own text
            continue
        assert set(re.findall(r"{(\w+)", english)) == set(re.findall(r"{(\w+)", CHINESE[key])), key


def test_chinese_words_are_chinese() -> None:
    same = {re.sub(r"{\w+}", "", words) for key, words in ENGLISH.items() if words == CHINESE[key]}
    assert not [text for text in same if re.search("[a-z]{3}", text)]


def test_every_word_is_shown_somewhere() -> None:
    said: set[str] = set()
    begun: set[tuple[str, str]] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                said |= {node.value, *node.value.split(), node.value.partition(":")[0]}  # of a column: "step:code"
            elif isinstance(node, ast.JoinedStr):  # f"problem_{rule}": every word that begins and ends so
                ends = [one.value if isinstance(one, ast.Constant) else "" for one in (node.values[0], node.values[-1])]
                begun |= {(str(ends[0]), str(ends[1]))} - {("", "")}
    for path in PACKAGE.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        said |= set(re.findall(r"""["'](\w+)["']""", text))
        begun |= {(start, "") for start in re.findall(r"""["'](\w+_)["'] \+""", text)}
        begun |= {("", end) for end in re.findall(r"""\+ ["'](_\w+)["']""", text)}
    unused = [
        key
        for key in ENGLISH
        if key not in said
        and not key.startswith(OF_CORPORA)
        and not any(key.startswith(start) and key.endswith(end) for start, end in begun)
    ]
    assert not unused, " ".join(unused)
