"""`make bench`: the same code over a small set made by hand, as CI runs it."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from experiments import benchmarks

TEXTS = {
    "ride": ("Ride with the Devil", "Ride with the Devil is a 1999 western directed by Ang Lee."),
    "lee": ("Ang Lee", "Ang Lee was born in Pingtung in Taiwan."),
    "pingtung": ("Pingtung", "Pingtung is a county in the south of Taiwan."),
    "heat": ("Heat", "Heat is a 1995 film directed by Michael Mann."),
    "mann": ("Michael Mann", "Michael Mann was born in Chicago in the United States."),
    "chicago": ("Chicago", "Chicago is a city on Lake Michigan."),
    "喜宴": ("喜宴", "《喜宴》是李安执导的1993年电影。"),
    "李安": ("李安", "李安出生于台湾屏东。"),
}
QUESTIONS = [
    ("Where was the director of Ride with the Devil born?", ["ride", "lee"]),
    ("Where was the director of Heat born?", ["heat", "mann"]),
    ("Which city lies on Lake Michigan?", ["chicago"]),
    ("《喜宴》的导演出生在哪里？", ["喜宴", "李安"]),
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "hashing")
    monkeypatch.setenv("WORKBENCH_NAMES", "rules")
    folder = tmp_path / "data" / "2wiki"
    folder.mkdir(parents=True)
    corpus = [{"id": i, "title": title, "text": text} for i, (title, text) in TEXTS.items()]
    asked = [{"id": f"q{n}", "question": text, "gold": gold} for n, (text, gold) in enumerate(QUESTIONS)]
    for name, rows in (("corpus.jsonl.gz", corpus), ("questions.jsonl", asked)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return tmp_path / "data"


def test_a_slice_from_end_to_end(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "benchmarks.md"
    out.write_text("# Benchmarks\n\n## Speed\n\nas it was\n\n## Retrieval\n\nold\n", encoding="utf-8")
    measured = ["retrieval", "ablation", "reflection", "calibration", "indexing"]
    benchmarks.main([str(data), "--only", *measured, "--limit", "3", "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    chapters = dict(benchmarks.split(text))
    assert list(chapters) == [benchmarks.CHAPTERS[name][0] for name in ["speed", *measured]]
    assert chapters["Speed"] == "as it was" and "old" not in chapters["Retrieval"]
    assert str(tmp_path) not in text
    for name in measured:
        title = benchmarks.CHAPTERS[name][0]
        assert f"`python -m experiments.benchmarks DATA --only {name} --limit 3`; workbench " in chapters[title]
        assert " cores._" in chapters[title]
    for absent in ("musique", "xquad zh→en", "lihua"):
        assert absent in chapters["Retrieval"].partition("Not measured in this run: ")[2]
    ranked = lines(chapters["Retrieval"])
    assert {"fusion_agent", "hybrid_search", "chain_exploration", "bm25", "dense", "rrf"} <= {r[0] for r in ranked}
    (whole,) = (r for r in lines(chapters["What plan, reflect and merge each add"]) if r[0] == "2wiki")
    assert len(whole) == 5 and all(cell.count(" / ") == 2 for cell in whole[1:])
    rounds = [r for r in lines(chapters["Whether a round of reflection pays"]) if r[0] == "2wiki"]
    assert [r[1] for r in rounds] == ["fusion_agent without reflect", "fusion_agent"] and rounds[0][5] == "1.00"
    assert rounds[-1][2:4] == [whole[1].split(" / ")[1], whole[1].split(" / ")[2]]
    (errors,) = (r for r in lines(chapters["How far scores can be believed"]) if r[0] == "2wiki")
    assert all(0 <= float(part) <= 1 for cell in errors[1:] for part in cell.split(" / "))
    (index,) = (r for r in lines(chapters["Indexing"]) if r[0] == "2wiki")
    assert index[1:3] == ["8", "8"]


def lines(chapter: str) -> list[list[str]]:
    """The rows of its tables."""
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in chapter.splitlines() if row[:2] == "| "]


def test_part_of_a_set_is_a_base_of_its_own(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl.gz"
    corpus.write_bytes(gzip.compress(b'{"id": "a", "lang": "en"}\n{"id": "b", "lang": "zh"}\n'))
    out = benchmarks.narrowed(corpus, {"lang": "zh"}, tmp_path / "zh.jsonl")
    assert out.read_text(encoding="utf-8") == '{"id": "b", "lang": "zh"}\n'
    assert [one.base for one in benchmarks.SETS if one.folder == "xquad"] == ["xquad_en", "xquad_zh"]


def test_what_is_in_the_repository_names_no_place_of_a_machine() -> None:
    text = benchmarks.OUT.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w./])/\w+/\w", text)
    known, told = [title for title, _ in benchmarks.CHAPTERS.values()], [title for title, _ in benchmarks.split(text)]
    assert told == [title for title in known if title in told] and "Retrieval" in told
