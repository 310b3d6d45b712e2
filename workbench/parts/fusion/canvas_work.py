"""Five operations on nodes of a canvas, from its edges and groups and from what a knowledge base says of them.

``decomposition`` asks what a node presupposes and consists of; ``scoring`` what an answer covers and misses;
``explanation`` asks the base, as any question is asked; ``verification`` checks each sentence against the base;
``review`` orders nodes by their support: what is contradicted or missing first, what states nothing last. A learner's
answers are not sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from workbench.graphs.generate import shares_by_meaning
from workbench.language import support
from workbench.parts.fusion.canvas import CanvasError, is_name, title_and_text
from workbench.ports import KnowledgeBase, Passage
from workbench.state import Data
from workbench.text import clean, sentences
from workbench.tools.scoring import rrf
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
_WORTH = {
    "contradicted": 0.0,
    "missing": 0.0,
    "unsupported": 0.0,
    "partly": 0.5,
    "covered": 1.0,
    "supported": 1.0,
}

_PRONOUN = re.compile(r"^(?:It|They|This|These)\b\s*|^(?:它们|它|这)")
_FIGURE = re.compile(r"\d[\d,.]*")


def worth(kind: str) -> float:
    """Return how well a kind of result speaks of its node, 0 to 1; the same for those that do not judge."""
    return _WORTH.get(kind, 0.5)


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
        self.shares = shares_by_meaning(base)
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
        rankings = {
            "bm25": self.base.search("words", query, 20),
            "dense": self.base.search("meaning", query, 20),
        }
        sources = list[tuple[Passage, str]]()
        for passage in self.base.passages([chunk_id for chunk_id, _ in rrf(rankings)]):
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
                sources.append((passage, text))
        return sources[:5]

    def verdict(self, sentence: str, text: str) -> str:
        """Return whether a text supports a sentence, every word of it."""
        verdict = support.check_sentence(f"{sentence}[1]", {1: text}, self.shares).verdict
        # The likeness to each word of a sentence that a text must have; less is another term, however much else it
        # covers.
        missing_word = min(self.base.words(sentence, [text])["texts"][0], default=1.0) < 0.65
        return "partly" if verdict == "supported" and missing_word else verdict

    def contradicts(self, sentence: str, text: str) -> bool:
        """Return whether a text is about the same and denies it, or has other numbers."""
        seen = support.agreement(sentence, text, shares=self.shares)
        if seen.share < support.MOST or seen.denied:
            return seen.share >= support.MOST
        numbers = all(re.search(r"\d", side) for side in (sentence, text))
        return (
            seen.lacks_exact and numbers and support.by_words(sentence, [text])[0] >= support.MOST
        )

    def verify(
        self, sentence: str, node_id: str
    ) -> tuple[str, float, tuple[Passage, str] | None]:
        """Return ``supported``, ``partly``, ``contradicted`` or ``unsupported``; the share covered; the source."""
        subject = next((start for start, end in self.answered if end == node_id), node_id)
        claim = _with_subject(self.title(subject), sentence)
        sources = self.sources(claim, node_id)
        if not sources:
            return "unsupported", 0.0, None
        texts = []
        for passage, text in sources:
            title = passage["title"]
            texts.append(
                "\n".join(
                    [title, *(_with_subject(title, sentence) for sentence in sentences(text))]
                )
            )
        covered = [support.agreement(claim, text, shares=self.shares).share for text in texts]
        # one by one: together they support anything
        verdicts = [self.verdict(claim, text) for text in texts]
        nearest = max(range(len(texts)), key=lambda n: (covered[n], -n))
        surest = max(range(len(texts)), key=lambda n: (_WORTH[verdicts[n]], n == nearest, -n))
        if verdicts[surest] != "supported" and self.contradicts(claim, texts[nearest]):
            return "contradicted", 0.0, sources[nearest]
        source = sources[nearest if verdicts[surest] == "unsupported" else surest]
        return verdicts[surest], covered[nearest], source

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
        """Return the results of a node with their mean worth; with the label ``empty`` where there are none."""
        score = sum(_WORTH[row["kind"]] for row in rows) / len(rows) if rows else None
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
    questions = [start for start, end in desk.answered if end == target]
    subject = desk.title(questions[0] if questions else target)
    statements = [_with_subject(subject, sentence) for sentence in desk.statements(target)]
    text = f"{desk.title(target)}\n{desk.text(target)}"
    rows = list[Row]()
    for sentence, source in _points(desk, target, questions):
        node = source if source in desk.canvas.nodes else ""
        title = desk.title(node) if node else source
        point = _with_subject(title, sentence)
        rows.append(
            _row(
                _coverage(desk, point, f"{title}\n{point}", text, statements),
                sentence,
                title,
                node,
            )
        )
    return desk.scored_entry(target, rows, "canvas_no_source")


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


def _coverage(desk: Desk, point: str, source: str, text: str, statements: Sequence[str]) -> str:
    """Return whether an answer, as a text and as statements, covers a point of its source."""
    verdict = desk.verdict(point, text)
    if verdict == "supported":
        return "covered"
    opposed = any(desk.contradicts(statement, source) for statement in statements)
    if opposed or desk.contradicts(point, text):
        return "contradicted"
    contained = any(desk.verdict(statement, source) == "supported" for statement in statements)
    return "partly" if verdict == "partly" or contained else "missing"


def verification(desk: Desk, target: str) -> Entry:
    """Check each sentence of a node against other sources: supported, partly, contradicted, unsupported."""
    return _verified(desk, target)[0]


def _verified(desk: Desk, target: str) -> tuple[Entry, float]:
    """Return the entry, and the strength of the node: a sentence without support adds up to half of what is covered."""
    rows = list[Row]()
    strengths = list[float]()
    for sentence in desk.statements(target):
        verdict, covered, source = desk.verify(sentence, target)
        node = ""
        because = ""
        if source:
            passage, text = source
            node = desk.node_for(passage)
            because = f"{passage['title']}: {cut(_nearest(sentence, text), 160)}"
            if verdict == "unsupported":
                node = ""
                because = f"{desk.labels('canvas_nearest')}{desk.labels('colon')}{because}"
            if figures := list(
                filter(_FIGURE.fullmatch, support.lost(sentence, f"{passage['title']}\n{text}"))
            ):
                because += desk.labels(
                    "canvas_figures", figures=desk.labels("comma").join(figures)
                )
        rows.append(_row(verdict, sentence, because, node))
        strengths.append(max(_WORTH[verdict], covered / 2))
    entry = desk.scored_entry(target, rows, "canvas_no_statement")
    return entry, sum(strengths) / len(strengths) if strengths else 0.0


def _nearest(sentence: str, text: str) -> str:
    candidates = sentences(text)
    shares = support.by_words(sentence, candidates)
    return candidates[max(range(len(candidates)), key=lambda n: (shares[n], -n))]


def review(desk: Desk, targets: Sequence[str]) -> list[Entry]:
    """Return what of each node is weak; what is contradicted or missing first, nodes that state nothing last.

    Among these the weakest comes first, of equals the prerequisites. A node that a learner has answered is as strong
    as the best answer; any other as its support.
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
        answers = [scoring(desk, end) for start, end in desk.answered if start == node]
        scored = [(answer, answer["score"] or 0.0) for answer in answers] or [
            _verified(desk, node)
        ]
        entry, score = max(scored, key=lambda pair: pair[1])
        weak = [row for row in entry["rows"] if _WORTH[row["kind"]] < 1]
        weak.sort(key=lambda row: [*_WORTH].index(row["kind"]))
        kinds = {row["kind"] for row in entry["rows"]}
        right = kinds.isdisjoint(("contradicted", "missing"))
        place = (not kinds, right, score, layers[node][0])
        ranked.append((place, desk.entry(node, weak, score, entry["note"])))
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
