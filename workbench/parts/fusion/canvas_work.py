"""Five operations on nodes of a canvas: what each asks a knowledge base, and what it makes of edges, groups and base.

``decomposition`` asks what a node presupposes and consists of; ``scoring`` what an answer covers and misses;
``explanation`` asks the base, as any question is asked; ``verification`` holds each sentence against the base;
``review`` orders nodes by how much of them was found: the least first, what states nothing last. A learner's answers
are not sources.

Whether a text says the same is judged by the checker's model. Without one nothing is judged: the closest sentence is
shown, with the words, numbers and negations that differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from workbench.errors import WorkbenchError, shown
from workbench.graphs.answer_check import verdicts_by_model
from workbench.language import citing
from workbench.parts.fusion.canvas import CanvasError, is_name, title_and_text
from workbench.ports import KnowledgeBase, KnowledgeBases, Passage
from workbench.state import Data, unique
from workbench.text import clean, detect_language, sentences
from workbench.tools import hybrid
from workbench.tools.scoring import Question
from workbench.tools.tool import StepLog
from workbench.views.labels import Labels
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
_COVERAGE = {"supported": "covered", "unsupported": "missing"}
"""A verdict on a point of a source, held against an answer -> whether the answer covers it."""


def worth(kind: str) -> float:
    """Return how well a kind of result speaks of its node, 0 to 1; the same for those that do not judge."""
    return _WORTH.get(kind, 0.5)


class Row(TypedDict):
    """One result: its ``kind``, its text, the reason, the node of the canvas that it is about, if any, and the share of
    its words that were found.
    """

    kind: str
    text: str
    because: str
    node: str
    share: float


class Entry(TypedDict):
    """The results of one node; ``score`` 0 to 1 where there is one; ``run_id`` of the run that was asked."""

    node: str
    title: str
    score: float | None
    note: str
    run_id: str
    rows: list[Row]


class Point(NamedTuple):
    """A sentence, what it is on, the node that is shown with it, and the texts that it is held against."""

    sentence: str
    title: str
    node: str
    texts: list[tuple[str, str]]
    lead: str


class Desk:
    """A canvas and the base that is asked about it."""

    def __init__(self, canvas: CanvasFile, base: KnowledgeBase, labels: Labels):
        self.canvas = canvas
        self.base = base
        self.labels = labels
        self.faults = list[str]()
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
        """Return the title of a node, "" where there is none."""
        return self.texts.get(node_id, ("", ""))[0]

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
        return citing.statements(self.text(node_id))

    def sources(self, query: str, exclude: str) -> list[tuple[Passage, str]]:
        """Return the best passages and their texts: no group, link, question or answer, nor the node itself."""
        log = StepLog()
        question = Question.read(query, self.base)
        hits = hybrid.from_texts(question, 20, log)
        usable = {}
        for passage, _ in hybrid.fuse(question, hits, 20, log):
            node = self.node_for(passage)
            if node and (
                node in (exclude, *self.answers)
                or self.canvas.nodes[node]["type"] in ("group", "link")
            ):
                continue
            text = (
                without_edges(self.base, passage["doc_id"], passage["text"])
                if node
                else passage["text"]
            )
            text = text.strip()
            if text and text[-1] not in "?？":
                usable[passage["chunk_id"]] = (passage, text)
        ranked = hybrid.rerank(question, [passage for passage, _ in usable.values()], hits, log)
        return [usable[hit["source_id"]] for hit in ranked[:5]]

    def verdicts(self, claims: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> list[str]:
        """Return the checker's verdict on each claim by its ``(title, text)``; "" where no model gives one."""
        context = self.canvas.workspace.ports()
        if "checker" not in context.models or not claims:
            return [""] * len(claims)
        evidence = list[Any]()
        statements = list[citing.Support]()
        for claim, texts in claims:
            cited = list(range(len(evidence) + 1, len(evidence) + len(texts) + 1))
            evidence += [
                {"evidence": text, "score": 1.0, "metadata": {"title": title}}
                for title, text in texts
            ]
            statements.append(citing.Support(claim, "unjudged", cited, [], ""))
        judged, self.faults = self.canvas.workspace.call(
            verdicts_by_model(context, statements, evidence, claims[0][0])
        )
        return [judged.get(claim, "") for claim, _ in claims]

    def compared(self, point: Point) -> tuple[str, float]:
        """Return the closest sentence of the best text, with what differs; and the share of the words found."""
        claim = point.sentence
        title, text = point.texts[0]
        closest = max(
            sentences(text), key=lambda line: citing.by_words(claim, [f"{title} {line}"])
        )
        source = f"{title}\n{closest}"
        missing = citing.lost_words(claim, source)
        [share] = citing.by_words(claim, [source])
        labels = self.labels
        parts = [
            f"{point.lead}{labels('colon')}{cut(closest, 160)}",
            labels("canvas_words", share=f"{share:.0%}"),
            labels("canvas_lacks", names=labels("comma").join(missing)) if missing else "",
        ]
        return " · ".join(filter(None, parts)), share

    def entry(self, node_id: str, rows: Iterable[Row], empty: str = "") -> Entry:
        """Return the results of a node, the worst first, with the mean worth of verdicts."""
        rows = sorted(rows, key=lambda row: worth(row["kind"]))
        judged = [_WORTH[row["kind"]] for row in rows if row["kind"] in _WORTH]
        note = "" if rows else self.labels(empty)
        if rows and self.faults:
            note = self.labels("canvas_no_checker", why=self.faults[-1])
        return Entry(
            node=node_id,
            title=self.title(node_id),
            score=round(sum(judged) / len(judged), 4) if judged else None,
            note=note,
            run_id="",
            rows=rows,
        )


def _row(kind: str, text: str, because: str = "", node: str = "", share: float = 0) -> Row:
    return Row(kind=kind, text=text, because=because, node=node, share=round(share, 3))


def decomposition(desk: Desk, target: str) -> Entry:
    """Ask what a node presupposes and consists of, as smaller questions in the order of learning."""
    return desk.entry(target, _smaller_questions(desk, target), "canvas_alone")


def _smaller_questions(desk: Desk, target: str) -> Iterator[Row]:
    most_rows = 12
    labels = desk.labels
    path = {target: [desk.title(target)]}
    waiting = [target]
    for upper in waiting:
        for lower, label in desk.needs[upper].items():
            if lower not in path and len(path) <= most_rows:
                arrow = ("←{}—" if _NEEDS.search(label) else "—{}→").format(label)
                path[lower] = [desk.title(lower), arrow if label else "→", *path[upper]]
                waiting.append(lower)
    for node in sorted(waiting[1:], key=lambda i: -len(path[i])):
        yield _row(
            "presupposes",
            labels("canvas_ask_what", title=desk.title(node)),
            " ".join(path[node]),
            node,
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
    answer = [(desk.title(target), desk.text(target))]
    points = [
        Point(
            sentence,
            desk.title(node) or title,
            node,
            answer,
            desk.labels("canvas_against", title=desk.title(node) or title),
        )
        for sentence, node, title in _points(desk, target, questions)
    ]
    return desk.entry(target, _rows(desk, points, _COVERAGE), "canvas_no_source")


def _rows(desk: Desk, points: Sequence[Point], kinds: Mapping[str, str]) -> Iterator[Row]:
    """Yield a row for each point, by the model's verdict where there is one."""
    claims = [(f"{point.title}: {point.sentence}", point.texts) for point in points]
    for point, verdict in zip(points, desk.verdicts(claims), strict=True):
        because, share = desk.compared(point) if point.texts else ("", 0.0)
        yield _row(
            kinds.get(verdict, verdict) or "unjudged", point.sentence, because, point.node, share
        )


def _points(desk: Desk, target: str, questions: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the sentences that an answer should cover, each with its node or the title of its passage."""
    prerequisites = [lower for question in questions for lower in desk.needs[question]]
    # a question states nothing, its prerequisites do
    for nodes in (questions, dict.fromkeys(prerequisites)):
        points = [(sentence, node, "") for node in nodes for sentence in desk.statements(node)]
        if len(points) > 1:
            break
    else:
        query = " ".join(
            f"{desk.title(node)} {desk.text(node)}" for node in questions or [target]
        )
        points = [
            (sentence, desk.node_for(passage), passage["title"])
            for passage, text in desk.sources(query, target)
            for sentence in citing.statements(text)[:2]
        ]
    return unique(points)[:8]


def verification(desk: Desk, target: str) -> Entry:
    """Hold each sentence of a node against the best passage of the others; a model says whether that supports it."""
    subject = desk.title(next((start for start, end in desk.answered if end == target), target))
    points = []
    for sentence in desk.statements(target):
        sources = desk.sources(f"{subject}: {sentence}", target)
        texts = [(passage["title"], text) for passage, text in sources]
        node = desk.node_for(sources[0][0]) if sources else ""
        points.append(Point(sentence, subject, node, texts, texts[0][0] if texts else ""))
    return desk.entry(target, _rows(desk, points, {}), "canvas_no_statement")


def review(desk: Desk, targets: Sequence[str]) -> list[Entry]:
    """Return what of each node is not found whole, the least first, nodes that state nothing last.

    By the verdicts of a model where it judges, else by the share of the words that were found.
    """

    def place(entry: Entry) -> tuple[bool, float]:
        rows = entry["rows"]
        share = sum(row["share"] for row in rows) / max(1, len(rows))
        return not rows, share if entry["score"] is None else entry["score"]

    entries = sorted((verification(desk, node) for node in targets), key=place)
    for entry in entries:
        entry["rows"] = [row for row in entry["rows"] if worth(row["kind"]) < 1]
    return entries


def explanation(desk: Desk, targets: Sequence[str]) -> Iterator[Entry]:
    """Ask the base about each node: the answer, its evidence, and the path of edges that leads to the node."""
    wb = desk.canvas.workspace
    base = desk.base.name
    questions = [_question(desk, node) for node in targets]
    for target, run in zip(
        targets, wb.map(questions, kb=base, progress=lambda *_: None), strict=True
    ):
        rows = [_row("answer", run.answer, run.query)]
        for citation in run.citations:
            node = desk.node_for(citation["source"])
            source = f"[{citation['n']}] {citation['source']['title']}"
            rows.append(_row("evidence", citation["sentence"], source, node))
        note = f"{desk.labels.status(run.status)} · {run.run_id}"
        yield Entry(**{**desk.entry(target, rows), "note": note, "run_id": run.run_id})


def _question(desk: Desk, node_id: str) -> str:
    text = desk.text(node_id).strip()
    if text.endswith(("?", "？")):
        return text
    return desk.labels("canvas_ask_what", title=desk.title(node_id))


_WORK: Mapping[str, Callable[[Desk, Any], Any]] = {
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
    targets = unique(targets)
    if len(targets) > most_nodes:
        raise CanvasError(
            f"{len(targets):,} nodes are too many at once: name at most {most_nodes}."
        )
    do = _WORK[operation]
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


# --- The question of a canvas that stands in a base, of which no file is read: a client that names a path opens nothing

Operation = Literal["decomposition", "scoring", "explanation", "verification", "review"]


def known_operation(name: Any) -> Operation:
    """Return the operation of that name.

    Raises:
        CanvasError: there is none; lists those that there are.
    """
    if name not in _WORK:
        raise CanvasError(f"There is no operation {shown(name)}. Known: {', '.join(_WORK)}.")
    return name


def question_nodes(base: KnowledgeBase, canvas: str) -> dict[str, str]:
    """Return the document of each node of the canvas; {} where the base does not hold it."""
    name = f"{PurePath(canvas.replace(chr(92), '/')).name}#"
    parts = ((doc_id, *doc_id.partition(name)) for doc_id in base.select())
    return {
        node: doc_id
        for doc_id, folder, mark, node in parts
        if mark and (not folder or folder.endswith("/"))
    }


def choose_base(bases: KnowledgeBases, canvas: str, names: Iterable[str]) -> str:
    """Return the first base, of these or of all, that holds the canvas.

    Raises:
        WorkbenchError: none does; it says how to add it.
    """
    candidates = list(names) or bases.names()
    for name in candidates:
        if question_nodes(bases.get(name), canvas):
            return name
    raise WorkbenchError(
        f"No canvas {shown(canvas)} in {', '.join(candidates) or 'any knowledge base'}. "
        f"Bring it in: wb.add_knowledge('NAME', [{shown(canvas)}])."
    )


def read_question(
    base: KnowledgeBase, canvas: str, operation: str, targets: Sequence[str]
) -> tuple[str, list[str]]:
    """Return what the operation asks about these nodes, or about the canvas, and the names that it is about.

    Scoring and verification ask for the texts of the nodes, the others for their titles; a node that is a question
    asks itself.

    Raises:
        WorkbenchError: there is no such node; it lists some.
    """
    nodes = question_nodes(base, canvas)
    if missing := [target for target in targets if target not in nodes]:
        names = ", ".join(list(nodes)[:10])
        raise WorkbenchError(
            f"There is no node {shown(missing[0])} in {shown(canvas)}. The first are: {names}."
        )
    titles = list[str]()
    texts = []
    for doc_id in (nodes[target] for target in targets):
        passages = base.passages(doc_ids=[doc_id])
        relations = base.around("relations", [f"doc:{doc_id}"])
        text = without_edges(base, doc_id, " ".join(passage["text"] for passage in passages))
        # Characters of a node's text in a question.
        texts.append(" ".join(text.split())[:400])
        ends = [end for relation in relations for end in (relation["source"], relation["target"])]
        entities = [base.entity(end) for end in ends if end != f"doc:{doc_id}"]
        neighbours = [
            entity["name"] for entity in entities if entity and entity["doc_id"] in nodes.values()
        ]
        title = passages[0]["title"]
        titles += [title] if is_name(title) else filter(is_name, neighbours)
    labels = Labels(detect_language(" ".join(texts) or canvas))
    questions = [text for text in texts if text.endswith(("?", "？"))]
    if questions or (texts and operation in ("scoring", "verification")):
        return " ".join(questions or texts), titles
    title = labels("comma").join(dict.fromkeys(titles)) or PurePath(canvas).stem
    return labels(f"canvas_asks_{operation}", title=title), titles


def without_edges(base: KnowledgeBase, doc_id: str, text: str) -> str:
    """Return the text of a node without its edges, which are no sentences of it."""
    for relation in base.around("relations", [f"doc:{doc_id}"]):
        text = text.replace(f"{relation['sentence']}.", "")
    return text
