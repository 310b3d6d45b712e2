"""Five operations on nodes of a canvas, from its edges and groups and from what a knowledge base says of them.

``decomposition`` asks what a node presupposes and consists of; ``scoring`` what an answer covers and misses;
``explanation`` asks the base, as any question is asked; ``verification`` holds each sentence against the base;
``review`` orders nodes by how much of them was found: the least first, what states nothing last. A learner's answers
are not sources.

Whether a text says the same is judged by the checker's model. Without one nothing is judged: the closest sentence is
shown, with the words, numbers and negations that differ. A rule that gave verdicts was right in 38 % of its
"contradicted" and 50 % of its "supported" on Climate-FEVER, 49 % and 69 % on OCNLI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from workbench.graphs.generate import verdicts_by_model
from workbench.language import support
from workbench.parts.fusion.canvas import CanvasError, is_name, title_and_text
from workbench.ports import KnowledgeBase, Passage
from workbench.state import Data
from workbench.text import CJK, clean, sentences
from workbench.tools import hybrid
from workbench.tools.scoring import Question
from workbench.tools.tool import StepLog
from workbench.views.labels import Labels
from workbench.views.layout import layered
from workbench.views.markup import cut

if TYPE_CHECKING:
    from workbench.parts.fusion.canvases import CanvasFile

_ANSWER = re.compile(r"\banswer|回答|答案", re.I)
_NEEDS = re.compile(
    r"\b(?:needs?|requires?|depends? on|presupposes?|uses?|based on|rests on|is an?|kind of|follows from|part of"
    r"|case of|example of)\b|需要|依赖|前提是|基于|用到|是一种|属于|取决于|的特例|的例子",
    re.I,
)
"""Labels of edges that lead from a node to its prerequisite; every other edge leads from the prerequisite."""
_WORTH = {"missing": 0.0, "unsupported": 0.0, "partly": 0.5, "covered": 1.0, "supported": 1.0}
_COVERAGE = {"supported": "covered", "partly": "partly", "unsupported": "missing", "": ""}
"""A verdict on a point of a source, held against an answer -> whether the answer covers it."""
_PRONOUN = re.compile(r"^(?:It|They|This|These)\b\s*|^(?:它们|它|这)")
_FIGURE = re.compile(r"\d[\d,.]*")
_UNIT = re.compile(
    rf"{CJK.pattern}|(?:(?!{CJK.pattern})[^\W_])+(?:['’.-](?:(?!{CJK.pattern})[^\W_])+)*"
)
"""A Chinese character, or a word of another language."""
_SMALL = re.compile(r"[A-Z]?[a-z]{0,2}|[Tt]he|[Aa]nd")


def worth(kind: str) -> float:
    """Return how well a kind of result speaks of its node, 0 to 1; the same for those that do not judge."""
    return _WORTH.get(kind, 0.5)


class Likeness(NamedTuple):
    """What of a sentence is in a text, without a word on what either means.

    Attributes:
        found: how many of its words the text has; of Chinese, characters that stand beside the same one.
        of: how many it has.
        missing: the others, in their order.
        figures: its numbers that the text does not have, and those of the text that it does not have.
        denied: whether the sentence and the text have a word of negation.
    """

    found: int
    of: int
    missing: list[str]
    figures: tuple[list[str], list[str]]
    denied: tuple[bool, bool]


def likeness(sentence: str, text: str, lead: str = "") -> Likeness:
    """Compare the words, numbers and negations of a sentence with those of a text; words may be in its ``lead`` too.

    Short words in small letters are mostly grammar, and are not counted.

    >>> likeness("The oxygen comes from carbon dioxide.", "All oxygen comes from water.")[:3]
    (3, 5, ['carbon dioxide'])
    >>> likeness("幂集有6个元素", "它的幂集有8个元素")[2:4]
    (['6'], (['6'], ['8']))
    """
    units = [match for match in _UNIT.finditer(sentence) if not _SMALL.fullmatch(match[0])]
    has = list(_found(units, f"{lead}\n{text}"))
    missing = []
    for present, run in groupby(zip(units, has, strict=True), key=lambda pair: pair[1]):
        matches = [match for match, _ in run]
        if not present:
            missing.append(sentence[matches[0].start() : matches[-1].end()])
    here, there = (
        [item for item in support.lost(one, other) if _FIGURE.fullmatch(item)]
        for one, other in ((sentence, text), (text, sentence))
    )
    denied = (support.denies(sentence), support.denies(text))
    return Likeness(sum(has), len(has), missing, (here, there), denied)


def _found(units: Sequence[re.Match[str]], text: str) -> Iterator[bool]:
    """Yield whether a text has each word; a Chinese character where it has one next to it, too."""

    def pair(first: re.Match[str], second: re.Match[str]) -> str:
        both = first.end() == second.start() and CJK.match(first[0]) and CJK.match(second[0])
        return f"{first[0]}{second[0]}" if both else ""

    pairs = ["", *(pair(*neighbours) for neighbours in pairwise(units)), ""]
    for n, unit in enumerate(units):
        words = [*filter(None, pairs[n : n + 2])] or [unit[0]]
        yield any(support.by_words(word, [text])[0] > 0.99 for word in words)


class Row(TypedDict):
    """One result: its ``kind``, its text, the reason, and the node of the canvas that it is about, if any."""

    kind: str
    text: str
    because: str
    node: str


class Entry(TypedDict):
    """The results of one node; ``score`` 0 to 1 where there is one; ``run_id`` of the run that was asked."""

    node: str
    title: str
    score: float | None
    note: str
    run_id: str
    rows: list[Row]


class Desk:
    """A canvas and the base that is asked about it."""

    def __init__(self, canvas: CanvasFile, base: KnowledgeBase, labels: Labels):
        self.canvas = canvas
        self.base = base
        self.labels = labels
        self.texts = {i: title_and_text(node) for i, node in canvas.nodes.items()}
        self.links = list(canvas.links())
        self.answers = {end for _, _, label, end in self.links if _ANSWER.search(label)}
        self.answers |= {
            i
            for i, (title, _) in self.texts.items()
            if re.match(r"my answer\b|我的回答", title, re.I)
        }
        self.answered = [
            (start, end)
            for _, start, _, end in self.links
            if end in self.answers and start not in self.answers
        ]
        self.needs: dict[str, dict[str, str]] = {i: {} for i in canvas.nodes}
        for _, start, label, end in self.links:
            if not {start, end} & self.answers:
                upper, lower = (start, end) if _NEEDS.search(label) else (end, start)
                self.needs[upper].setdefault(lower, label)

    def node_for(self, passage: Data) -> str:
        """Return the node of a passage or a source; "" where it is not of this canvas."""
        node_id = passage["doc_id"].removeprefix(f"{self.canvas.path.name}#")
        return node_id if node_id != passage["doc_id"] and node_id in self.canvas.nodes else ""

    def title(self, node_id: str) -> str:
        """Return the title of a node."""
        return self.texts[node_id][0]

    def text(self, node_id: str) -> str:
        """Return the text of a node without its title; of a file the text that was read, of a link or a group none."""
        kind = self.canvas.nodes[node_id]["type"]
        if kind in ("link", "group"):
            return ""
        if kind == "file":
            passages = self.base.passages(doc_ids=[f"{self.canvas.path.name}#{clean(node_id)}"])
            return "\n\n".join(passage["text"] for passage in passages)
        title, text = self.texts[node_id]
        text = text.removeprefix(f"# {title}\n\n")
        return re.sub(r"^(?:my answer|我的回答)\s*[:：]\s*", "", text, flags=re.I)

    def statements(self, node_id: str) -> list[str]:
        """Return the sentences of a node that state something."""
        return support.statements(self.text(node_id))

    def sources(self, query: str, exclude: str) -> list[tuple[Passage, str]]:
        """Return the best passages and their texts: no group, link, question or answer, nor the node itself."""
        log = StepLog()
        question = Question.read(query, self.base)
        hits = hybrid.from_texts(question, 20, log)
        texts = dict[str, str]()
        passages = list[Passage]()
        for passage, _ in hybrid.fuse(question, hits, 20, log):
            node = self.node_for(passage)
            text = passage["text"].strip()
            if node and (
                node in (exclude, *self.answers)
                or self.canvas.nodes[node]["type"] in ("group", "link")
            ):
                continue
            for relation in (
                self.base.around("relations", [f"doc:{passage['doc_id']}"]) if node else ()
            ):
                # an edge is not a sentence of the node
                text = text.replace(f"{relation['sentence']}.", "").strip()
            if text and text[-1] not in "?？":
                texts[passage["chunk_id"]] = text
                passages.append(passage)
        by_id = {passage["chunk_id"]: passage for passage in passages}
        ranked = hybrid.rerank(question, passages, hits, log)[:5]
        return [(by_id[hit["source_id"]], texts[hit["source_id"]]) for hit in ranked]

    def verdicts(self, claims: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> list[str]:
        """Return the checker's verdict on each claim by its ``(title, text)``; "" where no model gives one."""
        context = self.canvas.workspace.ports()
        if "checker" not in context.models or not claims:
            return [""] * len(claims)
        evidence = list[Any]()
        statements = list[support.Support]()
        for claim, texts in claims:
            cited = list(range(len(evidence) + 1, len(evidence) + len(texts) + 1))
            evidence += [
                {"evidence": text, "score": 1.0, "metadata": {"title": title}}
                for title, text in texts
            ]
            statements.append(support.Support(claim, "unsupported", cited, [], ""))
        judged = self.canvas.workspace.call(
            verdicts_by_model(context, statements, evidence, claims[0][0])
        )
        return [judged.get(claim, "") for claim, _ in claims]

    def compared(self, claim: str, title: str, text: str, lead: str) -> tuple[str, float]:
        """Return the closest sentence of a text behind ``lead``, with what differs; the share of the words found."""
        closest = _nearest(claim, text)
        seen = likeness(claim, closest, title)
        labels = self.labels
        comma = labels("comma").join
        here, there = seen.figures
        parts = [f"{lead}{labels('colon')}{cut(closest, 160)}"]
        parts.append(labels("canvas_words", n=seen.found, of=seen.of))
        if missing := [name for name in seen.missing if name not in here]:
            parts.append(labels("canvas_lacks", names=comma(missing)))
        if here or there:
            here, there = here or ["–"], there or ["–"]
            parts.append(labels("canvas_numbers", here=comma(here), there=comma(there)))
        if seen.denied[0] != seen.denied[1]:
            parts.append(
                labels("canvas_denied_here" if seen.denied[0] else "canvas_denied_there")
            )
        return " · ".join(parts), seen.found / max(1, seen.of)

    def entry(
        self, node_id: str, rows: Sequence[Row], score: float | None = None, note: str = ""
    ) -> Entry:
        """Return the results of a node."""
        rounded = None if score is None else round(score, 4)
        rows = sorted(rows, key=lambda row: worth(row["kind"]))
        return Entry(
            node=node_id,
            title=self.title(node_id),
            score=rounded,
            note=note,
            run_id="",
            rows=rows,
        )

    def scored_entry(self, node_id: str, rows: Sequence[Row], empty: str) -> Entry:
        """Return the results of a node with the mean worth of its verdicts; with the label ``empty`` without rows."""
        judged = [_WORTH[row["kind"]] for row in rows if row["kind"] in _WORTH]
        score = sum(judged) / len(judged) if judged else None
        return self.entry(node_id, rows, score, "" if rows else self.labels(empty))


def _with_subject(title: str, sentence: str) -> str:
    """Return a sentence with its first pronoun replaced by the title."""
    return _PRONOUN.sub(lambda _: f"{title} ", sentence) if is_name(title) else sentence


def _row(kind: str, text: str, because: str = "", node: str = "") -> Row:
    return Row(kind=kind, text=text, because=because, node=node)


def decomposition(desk: Desk, target: str) -> Entry:
    """Ask what a node presupposes and consists of, as smaller questions in the order of learning."""
    rows = list(_smaller_questions(desk, target))
    return desk.entry(target, rows, note="" if rows else desk.labels("canvas_alone"))


def _smaller_questions(desk: Desk, target: str) -> Iterator[Row]:
    most_rows = 12
    labels = desk.labels
    depth = {target: 0}
    waiting = [target]
    path = {target: desk.title(target)}
    for upper in waiting:
        for lower, label in desk.needs[upper].items():
            if lower not in depth and len(depth) <= most_rows:
                arrow = (
                    ("←{}—" if _NEEDS.search(label) else "—{}→").format(label) if label else "→"
                )
                depth[lower], path[lower] = (
                    depth[upper] + 1,
                    f"{desk.title(lower)} {arrow} {path[upper]}",
                )
                waiting.append(lower)
    for node in sorted(waiting[1:], key=lambda i: -depth[i]):
        yield _row(
            "presupposes", labels("canvas_ask_what", title=desk.title(node)), path[node], node
        )
    members = [
        i
        for i, group in desk.canvas.parents.items()
        if group == target and is_name(desk.title(i))
    ]
    for node in members[:most_rows]:
        question = labels("canvas_ask_part", title=desk.title(node), whole=desk.title(target))
        yield _row("part", question, desk.title(target), node)


def scoring(desk: Desk, target: str) -> Entry:
    """Score how much of its sources a node covers, an answer of its question's: covered, partly, missing."""
    return _scored(desk, target)[0]


def _scored(desk: Desk, target: str) -> tuple[Entry, float]:
    """Return the entry, and the share of the words of the points that the answer has."""
    questions = [start for start, end in desk.answered if end == target]
    answer = (desk.title(target), desk.text(target))
    points = _points(desk, target, questions)
    claims = [
        _with_subject(desk.title(source) if source in desk.canvas.nodes else source, sentence)
        for sentence, source in points
    ]
    verdicts = desk.verdicts([(claim, [answer]) for claim in claims])
    rows = list[Row]()
    shares = list[float]()
    for (sentence, source), claim, verdict in zip(points, claims, verdicts, strict=True):
        node = source if source in desk.canvas.nodes else ""
        lead = desk.labels("canvas_against", title=desk.title(node) if node else source)
        because, share = desk.compared(claim, *answer, lead)
        rows.append(_row(_COVERAGE[verdict] or "unjudged", sentence, because, node))
        shares.append(share)
    return desk.scored_entry(target, rows, "canvas_no_source"), _mean(shares)


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares) if shares else 0.0


def _points(desk: Desk, target: str, questions: Sequence[str]) -> list[tuple[str, str]]:
    """Return the sentences that an answer should cover, each with its node or the title of its passage."""
    prerequisites = [lower for question in questions for lower in desk.needs[question]]
    prerequisites += [lower for node in prerequisites for lower in desk.needs[node]]
    points = list[tuple[str, str]]()
    # a question states nothing, its prerequisites do
    for nodes in (questions, dict.fromkeys(prerequisites)):
        points = [(sentence, node) for node in nodes for sentence in desk.statements(node)]
        if len(points) > 1:
            break
    else:
        query = " ".join(
            f"{desk.title(node)} {desk.text(node)}" for node in questions or [target]
        )
        for passage, text in desk.sources(query, target):
            statements = support.statements(text)
            shares = zip(statements, support.by_words(query, statements), strict=True)
            source = desk.node_for(passage) or passage["title"]
            # The share of a question that a sentence must cover, to be a point of its answer.
            points += [(sentence, source) for sentence, share in shares if share >= 0.2]
    return list(dict.fromkeys(points))[:8]


def verification(desk: Desk, target: str) -> Entry:
    """Hold each sentence of a node against the best passage of the others; a model says whether that supports it."""
    return _verified(desk, target)[0]


def _verified(desk: Desk, target: str) -> tuple[Entry, float]:
    """Return the entry, and the share of the words of the node that its closest sources have."""
    subject = desk.title(next((start for start, end in desk.answered if end == target), target))
    claims = list[tuple[str, list[tuple[str, str]]]]()
    nodes = list[str]()
    statements = desk.statements(target)
    for sentence in statements:
        claim = _with_subject(subject, sentence)
        sources = desk.sources(claim, target)
        claims.append((claim, [(passage["title"], text) for passage, text in sources]))
        nodes.append(desk.node_for(sources[0][0]) if sources else "")
    rows = list[Row]()
    shares = list[float]()
    for sentence, (claim, texts), node, verdict in zip(
        statements, claims, nodes, desk.verdicts(claims), strict=True
    ):
        because, share = desk.compared(claim, *texts[0], texts[0][0]) if texts else ("", 0.0)
        rows.append(_row(verdict or "unjudged", sentence, because, node))
        shares.append(share)
    return desk.scored_entry(target, rows, "canvas_no_statement"), _mean(shares)


def _nearest(sentence: str, text: str) -> str:
    candidates = sentences(text)
    shares = support.by_words(sentence, candidates)
    return candidates[max(range(len(candidates)), key=lambda n: (shares[n], -n))]


def review(desk: Desk, targets: Sequence[str]) -> list[Entry]:
    """Return what of each node is not found whole, the least first, nodes that state nothing last.

    By the verdicts of a model where it judges, else by the share of the words that were found; of equals the
    prerequisites first. A node that a learner has answered counts by the best answer, any other by its sources.
    """
    edges = [
        (lower, upper)
        for upper, needed in desk.needs.items()
        for lower in needed
        if lower != upper
    ]
    layers = layered(desk.canvas.nodes, edges).places
    ranked = []
    for node in targets:
        answers = [_scored(desk, end) for start, end in desk.answered if start == node]
        results = [
            (entry, share if entry["score"] is None else entry["score"])
            for entry, share in answers or [_verified(desk, node)]
        ]
        entry, share = max(results, key=lambda pair: pair[1])
        weak = [row for row in entry["rows"] if worth(row["kind"]) < 1]
        place = (not entry["rows"], share, layers[node][0])
        ranked.append((place, desk.entry(node, weak, entry["score"], entry["note"])))
    return [entry for _, entry in sorted(ranked, key=lambda row: row[0])]


def explanation(desk: Desk, targets: Sequence[str]) -> list[Entry]:
    """Ask the base about each node: the answer, its evidence, and the path of edges that leads to the node."""
    wb = desk.canvas.workspace
    base = desk.base.name
    questions = [_question(desk, node) for node in targets]
    entries = []
    for target, run in zip(
        targets, wb.map(questions, kb=base, progress=lambda *_: None), strict=True
    ):
        rows = [_row("answer", run.answer, run.query)]
        for citation in run.citations:
            node = desk.node_for(citation["source"])
            source = f"[{citation['n']}] {citation['source']['title']}"
            rows.append(_row("evidence", citation["sentence"], source, node))
        above = [row for row in _smaller_questions(desk, target) if row["kind"] == "presupposes"]
        rows += [_row("way", row["because"], "", row["node"]) for row in above[:1]]
        entry = desk.entry(target, rows, None, f"{desk.labels.status(run.status)} · {run.run_id}")
        entry["run_id"] = run.run_id
        entries.append(entry)
    return entries


def _question(desk: Desk, node_id: str) -> str:
    text = desk.text(node_id).strip()
    if text.endswith(("?", "？")):
        return text
    return desk.labels("canvas_ask_what", title=desk.title(node_id))


OPERATIONS: Mapping[str, Callable[[Desk, Any], Any]] = {
    operation.__name__: operation
    for operation in (decomposition, scoring, explanation, verification, review)
}
"""Review and explanation take all nodes at once, the others one."""


def work(desk: Desk, operation: str, nodes: Sequence[str]) -> list[Entry]:
    """Apply an operation to these nodes; a group without a text means its members, no nodes mean all that fit.

    Raises:
        CanvasError: there is no such node, or there are too many.
    """
    most_nodes = 50  # nodes of one operation
    targets = list[str]() if nodes else _fitting(desk, operation)
    for node in nodes:
        group = desk.canvas.node(node)["type"] == "group" and operation not in (
            "decomposition",
            "explanation",
        )
        targets += _fitting(desk, operation, node) if group else [node]
    targets = list(dict.fromkeys(targets))
    if len(targets) > most_nodes:
        raise CanvasError(
            f"{len(targets):,} nodes are too many at once: name at most {most_nodes}."
        )
    do = OPERATIONS[operation]
    if do in (review, explanation):
        return list(do(desk, targets))
    return [do(desk, node) for node in targets]


def _fitting(desk: Desk, operation: str, group: str = "") -> list[str]:
    """Return the nodes for an operation, in a group or anywhere: answers for scoring, if there are any; else texts."""
    texts = [
        i
        for i, node in desk.canvas.nodes.items()
        if node["type"] in ("text", "file") and desk.title(i)
    ]
    texts = [i for i in texts if not group or group in desk.canvas.around(i)]
    answers = [i for i in texts if i in desk.answers]
    if operation == "scoring" and answers:
        return answers
    return [i for i in texts if i not in desk.answers]
