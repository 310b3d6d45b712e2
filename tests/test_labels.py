"""Every word is there in both languages, once, with the same values in it."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import combinations
from pkgutil import iter_modules

import workbench.views.labels

EVERY = [import_module(f"workbench.views.labels.{one.name}") for one in iter_modules(workbench.views.labels.__path__)]
SUBJECTS = {module.__name__: module for module in EVERY if hasattr(module, "WORDS")}


def test_no_word_is_given_twice() -> None:
    for (one, ours), (other, theirs) in combinations(SUBJECTS.items(), 2):
        assert not set(ours.WORDS) & set(theirs.WORDS), (one, other)


def test_both_languages_take_the_same_values() -> None:
    for module in SUBJECTS.values():
        for key, (english, chinese) in module.WORDS.items():
            assert english and chinese, key
            if key.startswith("problem_"):  # the English of a problem is its own text
                continue
            assert set(re.findall(r"{(\w+)", english)) == set(re.findall(r"{(\w+)", chinese)), key


def test_chinese_words_are_chinese() -> None:
    words = [pair for module in SUBJECTS.values() for pair in module.WORDS.values()]
    same = {re.sub(r"{\w+}", "", english) for english, chinese in words if english == chinese}
    assert not [text for text in same if re.search("[a-z]{3}", text)]
