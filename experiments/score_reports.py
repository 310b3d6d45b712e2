"""How good reports are over the topics of ``data/blind/reports``, beside the plain answer to the same words.

    python -m experiments.score_reports [NAME] [--half open|reserved] [--data FOLDER] [--work FOLDER] [--sample N]

With a NAME, experiments/scores/reports-NAME.md is written too. FOLDER has the public question sets (a folder each with
``corpus.jsonl.gz``); topics over a set that is not there are left out, and named. ``--work`` keeps the indexes; with
``--sample`` a public set is the documents that topics name and N others, drawn by the hash of their ids.

What is read of a report: its paragraphs and list items, without headings, tables, code, pictures, references and
appendix. ``precision``: of all marks, those whose passage supports its sentence, alone or as a part of what it cites.
``recall``: of all sentences that state something, those that their passages support. A sentence with a word that it
has no source is marked; one without either is not. Means over topics, with 95 % bootstrap intervals over topics.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from experiments.blind import BLIND, SETS, rows
from workbench import Workbench
from workbench.errors import WorkbenchError
from workbench.graphs.answer_check import source_text
from workbench.language.citing import (
    check_sentence,
    checked,
    denies,
    lost_words,
    marked_sentences,
    statements,
)
from workbench.parts.evaluate.measures import mean_interval, share_interval
from workbench.ports import KnowledgeBase
from workbench.state import RetrievalResult
from workbench.text import CJK, fold, simplified, stem, terms

ROOT = BLIND.parents[1]
REPORTS = BLIND / "reports"
HALVES = ("open", "reserved")
SHARES = {
    "resolve": "references that resolve",
    "precision": "citation precision",
    "recall": "citation recall",
    "used": "gold documents used",
    "found": "gold documents retrieved",
    "facts": "facts said",
    "pronouns": "sentences with a pronoun for nothing",
}
COUNTS = {
    "bare": "sentences without a source, not marked",
    "marked": "sentences marked as without a source",
    "repeated": "repeated sentences",
    "words": "words",
}
_APART = re.compile(
    r"references|sources|bibliography|works cited|appendix|参考文献|参考资料|引用|来源|出处|附录",
    re.I,
)
_HEADING = re.compile(r"(#{1,6})\s+(?:[\d.]+\s+)?(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_SKIPPED = re.compile(r"\s*(?:\||!\[|<!--|</?\w|-{3,}\s*$|\*{3,}\s*$|:?-+:?\s*\|)")
_MARKS = re.compile(r"\[(\d+)\]")
_ASIDE = re.compile(
    r"\s?\((?:without a source|not in its sources)\)|（(?:未注明出处|来源中没有依据)）", re.I
)
_ITSELF = re.compile(
    r"(?:(?:this|the) (?:report|section|appendix)|(?:each|every|all) sections?|what follows)\b"
    r"|nothing (?:was|is|has been) found\b"
    r"|(?:本报告|这份报告|本节|各节|以下各节|下文)",
    re.I,
)
_OVERVIEW = re.compile(r"from the knowledge base .+ the sections cite|各节引用了知识库", re.I)
"""How an introduction without a model begins: it counts what the sections cite."""
_PRONOUN = re.compile(
    r"(?:it|he|she|they|its|his|her|their)\b|(?:this|these|those) (?:is|was|are|were|has|have|had)\b"
    r"|(?:他们|她们|它们|他|她|它|牠|其(?![中他一二次三余实])|该|此(?![外后前次时类种]))",
    re.I,
)
_GRAMMAR = re.compile(r"[的了在是为為和与與以于於由被把从從将將之这這那]")
_COMMON = re.compile(
    r"a|an|and|are|as|at|be|been|by|for|from|has|in|into|is|it|its|of|on|or|that|the|to|was|were|with"
)
_SAID = 0.8
"""The share of a fact's content words that must stand in a sentence, or in two that are neighbours."""


@dataclass
class Written:
    """A text as it is judged.

    Attributes:
        text: Markdown with marks ``[n]``.
        sources: what each mark stands for.
        listed: the marks that its references have; None where it has no list, and every mark speaks for itself.
        documents: the ids of what was retrieved for it.
    """

    text: str
    sources: Mapping[int, RetrievalResult] = field(default_factory=dict)
    listed: Sequence[int] | None = None
    documents: frozenset[str] = frozenset()


def paragraphs(text: str) -> list[str]:
    """The paragraphs and list items of a report's body, each a line; no heading, table, code, reference or appendix.

    >>> paragraphs("# A\\n\\nIt is\\ngreen [1].\\n\\n- one [2]\\n\\n## References\\n\\n[1] Moss\\n\\n## 1. B\\n\\nBig.")
    ['It is green [1].', 'one [2]', 'Big.']
    """
    found: list[str] = []
    depth = 0
    fenced = False
    opened = False
    for line in text.splitlines():
        if re.match(r"\s*(?:```|~~~)", line):
            fenced = not fenced
            opened = False
        elif fenced:
            continue
        elif heading := _HEADING.match(line):
            level = len(heading[1])
            opened = False
            if not depth or level <= depth:
                depth = level if _APART.match(heading[2].strip(" *")) else 0
        elif depth or not line.strip() or _SKIPPED.match(line):
            opened = False
        elif item := _ITEM.match(line):
            found.append(line[item.end() :].strip())
            opened = True
        else:
            said = line.strip().lstrip("> ")
            if opened:
                found[-1] += (
                    "" if CJK.search(found[-1][-1:]) and CJK.match(said) else " "
                ) + said
            else:
                found.append(said)
            opened = True
    return [one for one in found if terms(one)]


def headings(text: str) -> str:
    return "\n".join(match[2] for line in text.splitlines() if (match := _HEADING.match(line)))


def judged(
    gold: Mapping[str, Any], written: Written, base: KnowledgeBase | None
) -> dict[str, float | None]:
    """What a text is worth, by ``SHARES`` (0 to 1; None where there is nothing to be a share of) and ``COUNTS``."""
    return _measures(gold, written, base)[0]


def _measures(
    gold: Mapping[str, Any], written: Written, base: KnowledgeBase | None
) -> tuple[dict[str, float | None], dict[str, list[str]]]:
    """The measures, and what is wrong: ``bare``, ``unsupported``, ``unused``, ``unsaid``, ``unresolved``."""
    body = paragraphs(written.text)
    sources = {n: source_text(piece, base) for n, piece in written.sources.items()}
    about = f"{gold['topic']}\n{headings(written.text)}"
    titles = [name for text in sources.values() for name in text.partition("\n")[0].split(" / ")]
    stating = [paragraph for paragraph in body if not _contents(paragraph, titles)]
    said = [one for paragraph in stating for one in statements(_ASIDE.sub("", paragraph))]
    aside = {
        _ASIDE.sub("", one)
        for paragraph in body
        for one in marked_sentences(paragraph)
        if _ASIDE.search(one)
    }
    said = [one for one in said if not _on_itself(one, about)]
    right = 0
    marks = []
    bare = []
    unsupported = []
    for sentence in said:
        cited = list(dict.fromkeys(int(n) for n in _MARKS.findall(sentence)))
        found = check_sentence(sentence, sources)
        right += found.verdict == "supported"
        marks += [
            (n in found.by and found.verdict == "supported") or _alone(sentence, n, sources)
            for n in cited
        ]
        if not cited and sentence not in aside:
            bare.append(sentence)
        if cited and found.verdict != "supported":
            unsupported.append(
                f"{sentence} ({found.verdict}{': ' + found.why if found.why else ''})"
            )
    names = {n: str(piece["metadata"].get("doc_id", "")) for n, piece in written.sources.items()}
    used = [int(n) for paragraph in body for n in _MARKS.findall(paragraph)]
    known = {n for n, piece in written.sources.items() if _there(piece, base)}
    listed = set(used) | set(written.listed or ())
    wanted = set(gold["gold"])
    unsaid = [fact["text"] for fact in gold["facts"] if not _states(body, fact, names)]
    every = [one for paragraph in body for one in marked_sentences(paragraph)]
    plain = [fold(_MARKS.sub("", one)).strip() for one in every]
    cites = {names[n] for n in used if n in names}
    measures = {
        "resolve": _share(len([n for n in listed if n in known]), len(listed)),
        "precision": _share(sum(marks), len(marks)),
        "recall": _share(right, len(said)),
        "used": _share(len(wanted & cites), len(wanted)),
        "found": _share(len(wanted & written.documents), len(wanted)),
        "facts": _share(len(gold["facts"]) - len(unsaid), len(gold["facts"])),
        "pronouns": _share(sum(_dangling(paragraph) for paragraph in body), len(every)),
        "bare": float(len(bare)),
        "marked": float(len(aside)),
        "repeated": float(len(plain) - len(set(plain))),
        "words": float(sum(_length(paragraph) for paragraph in body)),
    }
    wrong = {
        "bare": bare,
        "unsupported": unsupported,
        "unused": sorted(wanted - cites),
        "unsaid": unsaid,
        "unresolved": [str(n) for n in sorted(listed - known)],
    }
    return measures, wrong


def _share(n: float, of: int) -> float | None:
    return n / of if of else None


def _alone(sentence: str, n: int, sources: Mapping[int, str]) -> bool:
    return check_sentence(f"{_MARKS.sub('', sentence)} [{n}]", sources).verdict == "supported"


def _on_itself(sentence: str, about: str) -> bool:
    """Whether a sentence speaks of the report: it says nothing that the topic and the headings do not."""
    if _OVERVIEW.match(sentence):
        return True
    gone = [word for word in lost_words(sentence, about) if not word.isdigit()]
    return bool(_ITSELF.match(sentence)) and len(gone) <= 1 and not _MARKS.search(sentence)


def _contents(paragraph: str, titles: Sequence[str]) -> bool:
    """Whether a paragraph states nothing: a label, and titles of sources with their marks."""
    bare = re.sub(r"^\*\*[^*]+\*\*\s*[:：]?", "", _MARKS.sub("", paragraph))
    for title in sorted(titles, key=len, reverse=True):
        bare = bare.replace(title, " ")
    return bool(_MARKS.search(paragraph)) and not content(bare)


def _there(piece: RetrievalResult, base: KnowledgeBase | None) -> bool:
    """Whether the base has the passage of a reference; without a base, whether it has a text."""
    if not base or piece["source_type"] != "chunk":
        return bool(piece["evidence"].strip())
    return bool(base.passages([piece["result_id"].partition(":")[2], piece["source_id"]]))


def content(text: str) -> list[str]:
    """The content words of a fact: no grammar.

    >>> content("Rev A draws 46 mW while it records"), content("原因是密封圈")
    (['rev', 'draw', '46', 'mw', 'while', 'record'], ['原因', '密封', '封圈'])
    """
    found = [
        term
        for term in terms(simplified(text))
        if not _COMMON.fullmatch(term) and not _GRAMMAR.search(term)
    ]
    return list(dict.fromkeys(stem(term) for term in found))


def _states(body: Sequence[str], fact: Mapping[str, str], names: Mapping[int, str]) -> bool:
    """Whether a sentence, or two neighbours, that cite the document of a fact have its content words and numbers, and
    deny what it denies.
    """
    every = [sentence for paragraph in body for sentence in marked_sentences(paragraph)]
    wordings = [content(fact[name]) for name in ("text", "also") if fact.get(name)]
    for span in [*((one,) for one in every), *pairwise(every)]:
        if fact["doc"] not in {names.get(int(n)) for one in span for n in _MARKS.findall(one)}:
            continue
        words = [{stem(term) for term in terms(simplified(_MARKS.sub("", one)))} for one in span]
        for wanted in wordings:
            said = [word for word in wanted if any(word in some for some in words)]
            most = max(range(len(span)), key=lambda n: len(words[n] & set(said)))
            numbers = all(word in said for word in wanted if word[0].isdigit())
            if (
                numbers
                and len(said) >= _SAID * len(wanted)
                and denies(span[most]) == denies(fact["text"])
            ):
                return True
    return False


def _dangling(paragraph: str) -> int:
    """How many sentences begin with a pronoun while no sentence before them in the paragraph names anything."""
    starts = [bool(_PRONOUN.match(one.lstrip(' *_"“'))) for one in marked_sentences(paragraph)]
    return next((n for n, pronoun in enumerate(starts) if not pronoun), len(starts))


def _length(text: str) -> int:
    """Words; a Chinese character counts as one."""
    bare = _MARKS.sub("", text)
    return len(re.findall(r"[^\W_]+(?:['’.-]\w+)*", CJK.sub(" ", bare))) + len(CJK.findall(bare))


def of_report(run: Any) -> Written:
    """What a report says, and what its references stand for; one that does not name its piece stands for nothing."""
    told = run.report.to_dict()
    pieces = {piece["result_id"]: piece for piece in run.evidence}
    listed = {
        int(n): line
        for n, line in re.findall(r"(?m)^\[(\d+)\](.*)$", told["report"]["references"])
    }
    sources = {}
    for citation in told["report_context"]["citations"]:
        piece = pieces.get(citation["result_id"])
        title = terms(str(piece["metadata"].get("title") or "")) if piece else []
        if piece and set(title) <= set(terms(listed.get(citation["n"], ""))):
            sources[citation["n"]] = piece
    return Written(told["report"]["final_report"], sources, list(listed), _documents(run))


def of_answer(run: Any) -> Written:
    """What a plain answer says; its marks are places in its evidence."""
    return Written(run.answer or "", dict(enumerate(run.evidence, 1)), None, _documents(run))


def _documents(run: Any) -> frozenset[str]:
    return frozenset(str(piece["metadata"].get("doc_id", "")) for piece in run.evidence)


@dataclass
class Scored:
    """A topic, what ours and the plain way are worth, what is wrong with ours, and why there is none."""

    topic: dict[str, Any]
    plain: dict[str, float | None]
    ours: dict[str, float | None] | None = None
    wrong: dict[str, list[str]] = field(default_factory=dict)
    failed: str = ""


def measured(wb: Workbench, topics: Sequence[dict[str, Any]]) -> Iterator[Scored]:
    report: Callable[..., Any] | None = getattr(wb, "report", None)
    for topic in topics:
        print(topic["id"], file=sys.stderr, flush=True)
        base = wb.knowledge.get(topic["corpus"])
        asked = wb.ask(
            topic["topic"], kb=topic["corpus"], session=uuid.uuid4().hex, incognito=True
        )
        scored = Scored(topic, judged(topic, of_answer(asked), base))
        if report:
            try:
                run = report(topic["topic"], kb=topic["corpus"])
                written, scored.failed = of_report(run), str(run.error or "")
            except (WorkbenchError, KeyError, AttributeError) as error:
                written, scored.failed = Written(""), f"{type(error).__name__}: {error}"
            scored.ours, scored.wrong = _measures(topic, written, base)
        yield scored


def indexed(
    wb: Workbench, name: str, gold: set[str], options: argparse.Namespace, work: Path
) -> bool:
    """Whether there is a base of that name now: of what is shipped, or of a public set."""
    vocabulary = None
    if name == "films":
        path = ROOT / "data" / "films.jsonl"
    elif name in SETS:
        path = BLIND / name / "corpus"
        vocabulary = BLIND / name / "vocabulary.toml"
    elif options.data and (options.data / name / "corpus.jsonl.gz").exists():
        path = options.data / name / "corpus.jsonl.gz"
    else:
        return False
    if name not in SETS and options.sample:
        path = drawn(path, gold, options.sample, work / f"{name}.jsonl")
    report = wb.add_knowledge(name, [path], vocabulary=vocabulary)
    print(
        f"{name}: {report.added} added, {len(report.problems)} not taken",
        file=sys.stderr,
        flush=True,
    )
    return True


def drawn(path: Path, gold: set[str], sample: int, out: Path) -> Path:
    """The documents that topics name, and so many others, in a file of their own."""
    lines = {
        json.loads(line)["id"]: line
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
    }
    others = sorted(
        lines.keys() - gold, key=lambda name: hashlib.sha256(name.encode()).hexdigest()
    )[:sample]
    kept = gold | set(others)
    out.write_text(
        "\n".join(line for name, line in lines.items() if name in kept) + "\n", encoding="utf-8"
    )
    return out


def told(values: Mapping[str, float | None], share: bool) -> str:
    """A mean over topics with its 95 % interval; a count with its sum before it."""
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return "-"
    low, high = mean_interval(known) if share or any(known.values()) else (0.0, 0.0)
    mean = sum(known.values()) / len(known)
    if share:
        return f"{mean:.1%} [{low:.0f}, {high:.0f}]"
    return f"{sum(known.values()):,.0f}: {mean:,.1f} [{low / 100:,.1f}, {high / 100:,.1f}]"


def tables(found: Sequence[Scored]) -> str:
    """Ours beside the plain way, and each corpus and language by itself."""
    ways = {"report": [s.ours for s in found], "plain answer": [s.plain for s in found]}
    ways = {name: some for name, some in ways.items() if all(some)}
    lines = [f"| {len(found)} topics | {' | '.join(ways)} |", "| --- |" + " --: |" * len(ways)]
    for measure, called in {**SHARES, **COUNTS}.items():
        values = [
            {str(n): one[measure] for n, one in enumerate(some) if one} for some in ways.values()
        ]
        lines.append(
            f"| {called} | {' | '.join(told(one, measure in SHARES) for one in values)} |"
        )
    groups = {
        f"{key}: {value}": [s for s in found if s.topic[key] == value]
        for key in ("corpus", "lang")
        for value in sorted({s.topic[key] for s in found})
    }
    for way in ways:
        lines += [
            "",
            f"| {way} | topics | {' | '.join([*SHARES, *COUNTS])} |",
            "| --- | --: |" + " --: |" * len(SHARES | COUNTS),
        ]
        for name, some in groups.items():
            each = [one for s in some if (one := s.ours if way == "report" else s.plain)]
            lines.append(
                f"| {name} | {len(some)} | {' | '.join(_mean(each, m) for m in {**SHARES, **COUNTS})} |"
            )
    failed = [s for s in found if s.failed]
    return "\n".join([*lines, *([f"\nFailed: {len(failed)}."] if failed else [])])


def _mean(each: Sequence[Mapping[str, float | None]], measure: str) -> str:
    known = [value for one in each if (value := one[measure]) is not None]
    mean = sum(known) / len(known) if known else 0.0
    return "-" if not known else f"{mean:.0%}" if measure in SHARES else f"{mean:.1f}"


def labelled() -> str:
    """How often the checker that all this rests on is right, on labelled pairs."""
    found = []
    for row in rows(REPORTS / "labels.jsonl"):
        [one] = checked(
            f"{row['sentence'][:-1]} [1]{row['sentence'][-1]}",
            {1: row["passage"]},
        )
        found.append((row, one.verdict == "supported"))
    groups = {"all": found}
    groups |= {lang: [one for one in found if one[0]["lang"] == lang] for lang in ("en", "zh")}
    kinds = dict.fromkeys(row["kind"] for row, _ in found)
    groups |= {kind: [one for one in found if one[0]["kind"] == kind] for kind in kinds}
    lines = [
        "| pairs | right | supported, and said so | not supported, and said so |",
        "| --- | --: | --: | --: |",
    ]
    for name, some in groups.items():
        cells = [[said == row["supported"] for row, said in some]]
        cells += [
            [said == truth for row, said in some if row["supported"] == truth]
            for truth in (True, False)
        ]
        lines.append(f"| {name} | {' | '.join(_counted(cell) for cell in cells)} |")
    return "\n".join(lines)


def _counted(right: Sequence[bool]) -> str:
    if not right:
        return "-"
    low, high = share_interval(sum(right), len(right))
    return f"{sum(right)}/{len(right)} ({low:.0f} % to {high:.0f} %)"


def seen(found: Sequence[Scored]) -> str:
    """What is wrong with the reports of the half that may be looked at."""
    lines = []
    for scored in found:
        wrong = {name: some for name, some in scored.wrong.items() if some} | (
            {"failed": [scored.failed]} if scored.failed else {}
        )
        if wrong:
            lines += ["", f"**{scored.topic['id']}** {scored.topic['topic']}", ""]
            lines += [f"- {name}: {'; '.join(some)[:1_500]}" for name, some in wrong.items()]
    return "\n".join(lines)


def main() -> None:
    given = argparse.ArgumentParser(
        prog="python -m experiments.score_reports", description=(__doc__ or "").splitlines()[0]
    )
    given.add_argument("name", nargs="?")
    given.add_argument("--half", choices=HALVES)
    given.add_argument(
        "--data", type=Path, default=Path(os.environ["DATA"]) if os.environ.get("DATA") else None
    )
    given.add_argument("--work", type=Path)
    given.add_argument("--sample", type=int, default=0)
    options = given.parse_args()
    topics = rows(REPORTS / "topics.jsonl")
    asked = [topic for topic in topics if options.half in (None, topic["half"])]
    with ExitStack() as stack:
        folder = options.work or stack.enter_context(tempfile.TemporaryDirectory())
        wb = stack.enter_context(Workbench.open(folder))
        corpora = dict.fromkeys(topic["corpus"] for topic in topics)
        gold = {
            name: {doc for t in topics if t["corpus"] == name for doc in t["gold"]}
            for name in corpora
        }
        there = [name for name in corpora if indexed(wb, name, gold[name], options, Path(folder))]
        found = list(measured(wb, [topic for topic in asked if topic["corpus"] in there]))
        checker = labelled()
    halves = {
        half: some for half in HALVES if (some := [s for s in found if s.topic["half"] == half])
    }
    parts = [f"**{half}**\n\n{tables(some)}" for half, some in halves.items()]
    parts.append(f"**The checker on labelled pairs**\n\n{checker}")
    if missing := [name for name in corpora if name not in there]:
        parts.append(f"Not measured, since the corpus is not there: {', '.join(missing)}.")
    if options.sample:
        parts.append(
            f"Of each public set the gold documents and {options.sample:,} others were indexed."
        )
    print("\n\n".join(parts))
    if options.name:
        commit = subprocess.check_output(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True
        ).strip()
        wrong = seen(halves.get("open", ()))
        parts += (
            [f"**What is wrong in the half that may be looked at**\n{wrong}"] if wrong else []
        )
        text = (
            f"# Reports, at {commit}\n\n`python -m experiments.score_reports`: `data/blind/reports`.\n\n"
            + "\n\n".join(parts)
        )
        (ROOT / "experiments" / "scores" / f"reports-{options.name}.md").write_text(
            f"{text}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
