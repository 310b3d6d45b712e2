"""From written sections to one text: numbers of the sources, headings, references, and the appendix that says how far
it can be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.parts.reports.markdown import escaped, inline
from workbench.state import ReportOutline, SectionContent
from workbench.text import fold

MARK = re.compile(r"\[(\d+)\]")
_WORDS: dict[str, tuple[str, str]] = {
    "introduction": ("Introduction", "引言"),
    "conclusion": ("Conclusion", "结论"),
    "glossary": ("Glossary", "术语"),
    "references": ("References", "参考文献"),
    "appendix": ("Appendix: how this was made and checked", "附录：生成与核查"),
    "checked": ("Statements held against their sources", "逐句核查"),
    "contradictions": ("Where sources contradict one another", "来源之间的矛盾"),
    "unused": ("Found and not used", "检索到但未采用"),
    "assumed": ("Assumed", "假设"),
    "plan": ("How it was searched", "检索步骤"),
    "open": ("Nothing was found on", "没有找到相关内容"),
}
MOST_UNUSED = 20


def heading(name: str, zh: bool) -> str:
    """A heading of a report, in its language."""
    return _WORDS[name][zh]


def numbers_of(sections: Sequence[SectionContent], earlier: Mapping[str, int]) -> dict[str, int]:
    """The number of each piece that a section cites: as in an earlier report of the same, else in order of appearance.

    Numbers that were given stay, so that a section that did not change reads the same.
    """
    found: dict[str, int] = {}
    cited = [
        section["sources"][int(n) - 1]
        for section in sections
        for n in MARK.findall(section["text"])
        if 1 <= int(n) <= len(section["sources"])
    ]
    free = max(earlier.values(), default=0)
    for piece in dict.fromkeys(cited):
        if piece in earlier:
            found[piece] = earlier[piece]
        else:
            free += 1
            found[piece] = free
    return found


def renumbered(text: str, sources: Sequence[str], numbers: Mapping[str, int]) -> str:
    """A section's text with the numbers of the report in place of its own; a mark that points at nothing goes.

    >>> renumbered("It is green [1][2].", ["p", "q"], {"p": 7, "q": 3})
    'It is green [7][3].'
    """

    def given(match: re.Match[str]) -> str:
        place = int(match[1]) - 1
        piece = sources[place] if 0 <= place < len(sources) else ""
        return f"[{numbers[piece]}]" if piece in numbers else ""

    return MARK.sub(given, text)


def markdown(
    outline: ReportOutline,
    sections: Sequence[SectionContent],
    numbers: Mapping[str, int],
    references: Sequence[str],
    parts: Mapping[str, str],
    zh: bool,
) -> str:
    """The whole report.

    Args:
        outline: its title and the order of its sections.
        sections: as written, with marks of their own.
        numbers: id of a piece -> its number here.
        references: a line for each number, in order of the numbers.
        parts: ``abstract``, ``introduction``, ``conclusion``, ``glossary``, ``appendix``: Markdown, "" for none.
        zh: whether it is for Chinese readers.
    """
    lines = [f"# {escaped(outline['title'])}"]
    lines += [parts["abstract"]] if parts.get("abstract") else []
    if parts.get("introduction"):
        lines += [f"## {heading('introduction', zh)}", parts["introduction"]]
    for section in in_order(sections):
        depth = section["section_id"].count(".")
        number = f"{section['section_id']}{'' if depth else '.'}"
        lines.append(f"{'#' * (2 + depth)} {number} {escaped(section['title'])}")
        text = renumbered(section["text"], section["sources"], numbers)
        lines += [without_heading(text, section["title"])] if text.strip() else []
    for name in ("conclusion", "glossary"):
        if parts.get(name):
            lines += [f"## {heading(name, zh)}", parts[name]]
    if references:
        end = "\n" if references[0].startswith("```") else "\n\n"
        lines += [f"## {heading('references', zh)}", end.join(references)]
    if parts.get("appendix"):
        lines += [f"## {heading('appendix', zh)}", parts["appendix"]]
    return "\n\n".join(lines) + "\n"


def in_order(sections: Sequence[SectionContent]) -> list[SectionContent]:
    """By their place in the tree."""
    return sorted(sections, key=lambda one: [int(n) if n.isdigit() else 0 for n in one["section_id"].split(".")])


def without_heading(text: str, title: str) -> str:
    """A section's text without its own heading over it once more."""
    first, _, rest = text.lstrip().partition("\n")
    bare = fold(re.sub(r"^[#\s]*[\d.]*\s*|[*_\s:：]+$|^\**", "", first))
    return rest.strip() if bare == fold(title) else text.strip()


def appendix(
    check: Mapping[str, Any],
    *,
    written_by: str,
    assumptions: Sequence[str],
    steps: Sequence[tuple[str, str, str, int]],
    unused: Sequence[str],
    numbers: Mapping[str, int],
    zh: bool,
) -> str:
    """Tables: what was checked, contradictions, what was assumed, how it was searched, what was not used.

    Args:
        check: what ``consistency`` says; empty where nothing was checked.
        written_by: who wrote the sections.
        assumptions: what was assumed.
        steps: id, tool, what was asked, how many pieces it found.
        unused: titles of documents.
        numbers: id of a piece -> its number.
        zh: whether it is for Chinese readers.
    """
    parts = [f"*{written_by}*"]

    def add(name: str, text: str) -> None:
        parts.extend([f"### {heading(name, zh)}", text])

    if check:
        rows = [(_NAMES[name][zh], str(check[name])) for name in _NAMES if name in check]
        for name in ("precision", "recall"):
            share, low, high = check[name]
            rows.append((_FIGURES[name][zh], f"{share:.1%} [{low:.1%}, {high:.1%}]"))
        rows.append((_FIGURES["score"][zh], f"{check['score']:.2f}"))
        if asked := check.get("validation", {}).get("keywords"):
            lost = ("、" if zh else ", ").join(check["validation"]["missing"])
            covered = f"{len(check['validation']['covered'])} / {len(asked)}"
            rows.append((_FIGURES["validation"][zh], f"{covered}{f' (− {lost})' if lost else ''}"))
        add("checked", _table(_HEADS["checked"][zh], rows))
    if check.get("contradictions"):
        told = [
            (one["first"], one["second"], " ".join(f"[{numbers[i]}]" for i in one["sources"] if i in numbers))
            for one in check["contradictions"]
        ]
        add("contradictions", _table(_HEADS["contradictions"][zh], told))
    if assumptions:
        add("assumed", "\n".join(f"- {escaped(one)}" for one in assumptions))
    if steps:
        add("plan", _table(_HEADS["plan"][zh], [(i, tool, asked, str(count)) for i, tool, asked, count in steps]))
    if unused:
        more = f" … (+{len(unused) - MOST_UNUSED})" if len(unused) > MOST_UNUSED else ""
        add("unused", ("、" if zh else "; ").join(map(escaped, unused[:MOST_UNUSED])) + more)
    return "\n\n".join(parts)


_FIGURES = {
    "precision": ("citation precision", "引用准确率"),
    "recall": ("citation recall", "引用覆盖率"),
    "score": ("overall", "总分"),
    "validation": ("keywords of the topic that it speaks of", "谈到的题目关键词"),
}
_HEADS = {
    "checked": (("what", "figure"), ("项目", "数值")),
    "contradictions": (("one source", "another", "sources"), ("一处", "另一处", "来源")),
    "plan": (("step", "tool", "asked", "pieces found"), ("步骤", "工具", "查询", "找到条数")),
}
_NAMES = {
    "statements": ("statements", "陈述"),
    "supported": ("supported by what they cite", "引文支持"),
    "partly": ("supported in part", "部分支持"),
    "unsupported": ("not in their sources (marked)", "来源中没有依据（已标明）"),
    "uncited": ("without a source (marked)", "未注明出处（已标明）"),
}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *([inline(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
