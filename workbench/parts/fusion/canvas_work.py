"""Five operations on nodes of a canvas, from its edges and groups and from what a knowledge base says of them.

``decomposition`` asks what a node presupposes and is made of; ``scoring`` what an answer covers and lacks;
``explanation`` asks the base, as any question is asked; ``verification`` holds each sentence against the base;
``review`` orders nodes by their support, the weakest first. A learner's answers are no source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from workbench.graphs.check import meant
from workbench.knowledge.reading.canvas import CanvasError, is_name, title_and_text
from workbench.language import support
from workbench.ports import KnowledgeBase, Passage
from workbench.state import Data
from workbench.text import clean, sentences
from workbench.tools.fusing import rrf
from workbench.views.labels import Labels
from workbench.views.layout import layered
from workbench.views.page import cut

if TYPE_CHECKING:
    from workbench.parts.fusion.canvases import CanvasFile

MOST_NODES = 50
"""Nodes that are worked on at once."""
_ANSWER = re.compile(r"\banswer|回答|答案", re.I)
_NEEDS = re.compile(
    r"\b(?:needs?|requires?|depends? on|presupposes?|uses?|based on|rests on|is an?|kind of|follows from|part of"
    r"|case of|example of)\b|需要|依赖|前提是|基于|用到|是一种|属于|取决于|的特例|的例子",
    re.I,
)
"""What stands on an edge that leads from a thing to what it rests on; every other edge leads the other way."""
_MOST_ROWS, _SOURCES, _POINTS = 12, 5, 8
_NEAR = 0.2
"""The share of what is asked about that a sentence must speak of, to be a point of its answer."""
_WORTH = {"contradicted": 0.0, "missing": 0.0, "unsupported": 0.0, "partly": 0.5, "covered": 1.0, "supported": 1.0}
_ALIKE = 0.6
"""The share of a sentence's words with which a text speaks of the same."""
_SAID = 0.65
"""How near to a word of a sentence a text must come; less is another term, however much of the rest it says."""
_PRONOUN = re.compile(r"^(?:It|They|This|These)\b\s*|^(?:它们|它|这)")
_AGAIN = (1, 3, 7)
"""Days until a node is looked at again: of weak, fair and strong support."""


class Row(TypedDict):
    """One finding: its ``kind``, what it says, why, and the node that it is about, if it is one of the canvas."""

    kind: str
    text: str
    because: str
    node: str


class Entry(TypedDict):
    """What was found for one node; ``score`` 0 to 1 where there is one; ``run_id`` of the run that was asked."""

    node: str
    title: str
    score: float | None
    note: str
    run_id: str
    rows: list[Row]


class Desk:
    """A canvas next to the base that is asked about it."""

    def __init__(self, canvas: CanvasFile, base: KnowledgeBase, labels: Labels):
        self.canvas, self.base, self.labels = canvas, base, labels
        self.texts = {i: title_and_text(node) for i, node in canvas.nodes.items()}
        self.links = list(canvas.links())
        self.answers = {end for _, _, label, end in self.links if _ANSWER.search(label)}
        self.answers |= {i for i, (title, _) in self.texts.items() if re.match(r"my answer\b|我的回答", title, re.I)}
        self.shares = meant(base)
        self.asked = [
            (start, end) for _, start, _, end in self.links if end in self.answers and start not in self.answers
        ]
        self.needs: dict[str, dict[str, str]] = {i: {} for i in canvas.nodes}
        for _, start, label, end in self.links:
            if not {start, end} & self.answers:
                upper, lower = (start, end) if _NEEDS.search(label) else (end, start)
                self.needs[upper].setdefault(lower, label)

    def id_of(self, passage: Data) -> str:
        """Return the node that a passage or a source is of, "" for none."""
        node_id = passage["doc_id"].removeprefix(f"{self.canvas.path.name}#")
        return node_id if node_id != passage["doc_id"] and node_id in self.canvas.nodes else ""

    def text(self, node_id: str) -> str:
        """Return what a node says, without its title; of a file what was read in it, of a link or a group nothing."""
        kind = self.canvas.nodes[node_id]["type"]
        if kind in ("link", "group"):
            return ""
        if kind == "file":
            read = self.base.passages_of([f"{self.canvas.path.name}#{clean(node_id)}"])
            return "\n\n".join(passage["text"] for passage in read)
        title, text = self.texts[node_id]
        text = text.removeprefix(f"# {title}\n\n")
        return re.sub(r"^(?:my answer|我的回答)\s*[:：]\s*", "", text, flags=re.I)

    def sources(self, query: str, without: str) -> list[tuple[Passage, str]]:
        """Return what says most of this, and its text: no group, link, question or answer, nor the node itself."""
        rankings = {"bm25": self.base.keyword_search(query, 20), "dense": self.base.vector_search(query, 20)}
        found = self.base.passages([i for i, _ in rrf(rankings)])
        kept = list[tuple[Passage, str]]()
        for passage in found:
            node, text = self.id_of(passage), passage["text"].strip()
            if node and (node in (without, *self.answers) or self.canvas.nodes[node]["type"] in ("group", "link")):
                continue
            for relation in self.base.relations_of(f"doc:{passage['doc_id']}") if node else ():
                text = text.replace(f"{relation['sentence']}.", "").strip()  # an edge is no sentence of it
            if text and text[-1] not in "?？":
                kept.append((passage, text))
        return kept[:_SOURCES]

    def held(self, sentence: str, without: str) -> tuple[str, float, list[tuple[Passage, str]]]:
        """``supported``, ``partly``, ``contradicted`` or ``unsupported``; how much of it the nearest says; by what."""
        about = next((start for start, end in self.asked if end == without), without)
        said = _named(self.title(about), sentence)
        sources = self.sources(said, without)
        texts = {
            n: "\n".join([title, *(_named(title, one) for one in sentences(text))])
            for n, (title, text) in enumerate(((passage["title"], text) for passage, text in sources), 1)
        }
        if not texts:
            return "unsupported", 0.0, []
        seen = {n: support.signals(said, text, self.shares) for n, text in texts.items()}
        each = {n: self.verdict(said, text) for n, text in texts.items()}  # by itself: together they say anything
        nearest = max(seen, key=lambda n: (seen[n]["covered"], -n))
        surest = max(each, key=lambda n: (_WORTH[each[n]], n == nearest, -n))
        if each[surest] != "supported" and contrary(seen[nearest], said, texts[nearest]):
            return "contradicted", 0.0, [sources[nearest - 1]]
        by = sources[(nearest if each[surest] == "unsupported" else surest) - 1]
        return each[surest], seen[nearest]["covered"], [by]

    def verdict(self, said: str, text: str) -> str:
        """Return whether a text supports a sentence, every word of it."""
        verdict = support.held(f"{said}[1]", {1: text}, self.shares).verdict
        unsaid = min(self.base.matches(said, [text]).texts[0], default=1.0) < _SAID
        return "partly" if verdict == "supported" and unsaid else verdict

    def title(self, node_id: str) -> str:
        """Return what a node is called."""
        return self.texts[node_id][0]

    def entry(self, node_id: str, rows: Sequence[Row], score: float | None = None, note: str = "") -> Entry:
        """Return what was found for a node."""
        rounded = None if score is None else round(score, 4)
        return Entry(node=node_id, title=self.title(node_id), score=rounded, note=note, run_id="", rows=list(rows))

    def rated(self, node_id: str, rows: Sequence[Row], without: str) -> Entry:
        """What was found for a node, with the share of it that is well; the label ``without`` where nothing was."""
        score = sum(_WORTH[row["kind"]] for row in rows) / len(rows) if rows else None
        return self.entry(node_id, rows, score, "" if rows else self.labels(without))


def _named(title: str, sentence: str) -> str:
    """Return a sentence that says what its first pronoun stands for."""
    return _PRONOUN.sub(lambda _: f"{title} ", sentence) if is_name(title) else sentence


def contrary(seen: Mapping[str, float], sentence: str, text: str) -> bool:
    """Return whether a text speaks of the same and says otherwise: one of them denies it, or their numbers differ."""
    if seen["covered"] < _ALIKE or seen["denied"]:
        return seen["covered"] >= _ALIKE
    numbers = all(re.search(r"\d", said) for said in (sentence, text))
    return bool(seen["lost"]) and numbers and support.by_words(sentence, [text])[0] >= _ALIKE


def _row(kind: str, text: str, because: str = "", node: str = "") -> Row:
    return Row(kind=kind, text=text, because=because, node=node)


def decomposition(desk: Desk, target: str) -> Entry:
    """What a node presupposes, is made of, leads to and says, as smaller questions: what comes first is first."""
    return desk.entry(target, list(_parts(desk, target)))


def _parts(desk: Desk, target: str) -> Iterator[Row]:
    labels, depth, waiting = desk.labels, {target: 0}, [target]
    way = {target: desk.title(target)}
    for one in waiting:
        for other, label in desk.needs[one].items():
            if other not in depth and len(depth) <= _MOST_ROWS:
                arrow = ("←{}—" if _NEEDS.search(label) else "—{}→").format(label) if label else "→"
                depth[other], way[other] = depth[one] + 1, f"{desk.title(other)} {arrow} {way[one]}"
                waiting.append(other)
    for one in sorted(waiting[1:], key=lambda i: -depth[i]):
        yield _row("presupposes", labels("canvas_ask_what", title=desk.title(one)), way[one], one)
    inside = [i for i, group in desk.canvas.parents.items() if group == target and is_name(desk.title(i))]
    for one in inside[:_MOST_ROWS]:
        asked = labels("canvas_ask_part", title=desk.title(one), whole=desk.title(target))
        yield _row("part", asked, desk.title(target), one)
    above = [(end, label) for _, start, label, end in desk.links if start == target and start in desk.needs[end]]
    for one, label in [(one, label) for one, label in above if is_name(desk.title(one))][:_MOST_ROWS]:
        said = " → ".join(filter(None, (desk.title(target), label, desk.title(one))))
        yield _row("leads_to", labels("canvas_ask_what", title=desk.title(one)), said, one)
    for place, sentence in enumerate(support.statements(desk.text(target))[:_MOST_ROWS]):
        key = "canvas_ask_why" if place else "canvas_ask_own"
        yield _row("statement", labels(key, title=desk.title(target), said=cut(sentence, 200)), sentence)


def scoring(desk: Desk, target: str) -> Entry:
    """Return how much of what the sources say a node says, an answer of what it answers: covered, partly, missing."""
    asked = [start for start, end in desk.asked if end == target]
    behind = [lower for one in asked for lower in desk.needs[one]]
    behind += [lower for one in behind for lower in desk.needs[one]]
    for among in (asked, dict.fromkeys(behind)):  # a question states nothing, and what it rests on does
        points = [(sentence, one) for one in among for sentence in support.statements(desk.text(one))]
        if len(points) > 1:
            break
    query = " ".join(f"{desk.title(one)} {desk.text(one)}" for one in asked or [target])
    for passage, text in desk.sources(query, target) if len(points) < 2 else ():
        said = support.statements(text)
        near = zip(said, support.by_words(query, said), strict=True)
        points += [(one, desk.id_of(passage) or passage["title"]) for one, share in near if share >= _NEAR]
    text, rows = desk.text(target), list[Row]()
    of_it = [_named(desk.title(asked[0]) if asked else desk.title(target), one) for one in support.statements(text)]
    text = f"{desk.title(target)}\n{text}"
    for sentence, source in list(dict.fromkeys(points))[:_POINTS]:
        node = source if source in desk.canvas.nodes else ""
        title = desk.title(node) if node else source
        point = _named(title, sentence)
        seen = support.signals(point, text, desk.shares)
        verdict = support.judged(seen, ", ".join(support.lost(point, text)))[0]
        kind = {"supported": "covered", "partly": "partly"}.get(verdict, "missing")
        whole = f"{title}\n{point}"
        if kind != "covered" and (
            contrary(seen, point, text)
            or any(contrary(support.signals(one, whole, desk.shares), one, point) for one in of_it)
        ):
            kind = "contradicted"
        elif kind == "missing" and any(desk.verdict(one, whole) == "supported" for one in of_it):
            kind = "partly"  # what it says is a part of the point
        rows.append(_row(kind, sentence, title, node))
    rows.sort(key=lambda row: tuple(_WORTH).index(row["kind"]))
    return desk.rated(target, rows, "canvas_no_source")


def verification(desk: Desk, target: str) -> Entry:
    """Each sentence of a node against what others say: supported, partly, contradicted, unsupported, and by whom."""
    return _verified(desk, target)[0]


def _verified(desk: Desk, target: str) -> tuple[Entry, float]:
    """Return what holds of a node; and its strength, to which the nearest source of what has none adds up to a half."""
    rows, strong = list[Row](), list[float]()
    for sentence in support.statements(desk.text(target)):
        verdict, near, by = desk.held(sentence, target)
        said = "; ".join(f"{passage['title']}: {cut(_nearest(sentence, text), 160)}" for passage, text in by)
        node = desk.id_of(by[0][0]) if by else ""
        if verdict == "unsupported" and by:
            node, said = "", f"{desk.labels('canvas_nearest')}{desk.labels('colon')}{said}"
        rows.append(_row(verdict, sentence, said, node))
        strong.append(max(_WORTH[verdict], near / 2))
    return desk.rated(target, rows, "canvas_no_statement"), sum(strong) / len(strong) if strong else 0.0


def _nearest(sentence: str, text: str) -> str:
    said = sentences(text)
    shares = support.by_words(sentence, said)
    return said[max(range(len(said)), key=lambda n: (shares[n], -n))]


def review(desk: Desk, targets: Sequence[str]) -> list[Entry]:
    """Return what to go over, the weakest first; of equals what others rest on.

    A node that a learner has answered is as strong as the best answer; another one as what others say of it.
    """
    edges = [(lower, upper) for upper, needed in desk.needs.items() for lower in needed if lower != upper]
    layers = layered(desk.canvas.nodes, edges).places
    found = []
    for one in targets:
        answers = [scoring(desk, end) for start, end in desk.asked if start == one]
        scored = [(answer, answer["score"] or 0.0) for answer in answers] or [_verified(desk, one)]
        entry, score = max(scored, key=lambda one: one[1])
        title, asks = desk.title(one), _question(desk, one)
        recall = asks if asks == desk.text(one).strip() else desk.labels("canvas_ask_recall", title=title)
        first = desk.labels("comma").join(desk.title(lower) for lower in desk.needs[one])
        rows = [_row("question", recall, first, one)]
        for weak in [row for row in entry["rows"] if _WORTH[row["kind"]] < 1][:2]:
            asked = desk.labels("canvas_ask_why", title=title, said=cut(weak["text"], 200))
            rows.append(_row("question", asked, weak["because"], weak["node"]))
        note = desk.labels("canvas_again", n=_AGAIN[(score >= 0.4) + (score >= 0.8)])
        found.append((score, layers[one][0], desk.entry(one, rows, score, note)))
    return [entry for _, _, entry in sorted(found, key=lambda one: one[:2])]


def explanation(desk: Desk, targets: Sequence[str]) -> list[Entry]:
    """What the base answers when asked about each node, with its evidence, and the way of edges that leads to it."""
    wb, base = desk.canvas.workspace, desk.base.name
    asked = [_question(desk, one) for one in targets]
    entries = []
    for one, run in zip(targets, wb.map(asked, kb=base, progress=lambda *_: None), strict=True):
        rows = [_row("answer", run.answer, run.query)]
        for citation in run.citations:
            node = desk.id_of(citation["source"])
            source = f"[{citation['n']}] {citation['source']['title']}"
            rows.append(_row("evidence", citation["sentence"], source, node))
        if not run.citations:
            for passage, text in desk.sources(run.query, "")[:3]:
                rows.append(_row("nearest", _nearest(run.query, text), passage["title"], desk.id_of(passage)))
        above = [row for row in _parts(desk, one) if row["kind"] == "presupposes"]
        rows += [_row("way", row["because"], "", row["node"]) for row in above[:1]]
        entry = desk.entry(one, rows, None, f"{desk.labels.status(run.status)} · {run.run_id}")
        entry["run_id"] = run.run_id
        entries.append(entry)
    return entries


def _question(desk: Desk, node_id: str) -> str:
    said = desk.text(node_id).strip()
    return said if said.endswith(("?", "？")) else desk.labels("canvas_ask_what", title=desk.title(node_id))


OPERATIONS: Mapping[str, Callable[[Desk, Any], Any]] = {
    one.__name__: one for one in (decomposition, scoring, explanation, verification, review)
}
"""Review and explanation work on all nodes at once, the others on one."""


def work(desk: Desk, operation: str, nodes: Sequence[str]) -> list[Entry]:
    """Do it for these nodes; a group that says nothing itself stands for what is in it, and none for all.

    Raises:
        CanvasError: there is no such node, or there are too many.
    """
    targets = list[str]() if nodes else _within(desk, operation)
    for one in nodes:
        group = desk.canvas.named(one)["type"] == "group" and operation not in ("decomposition", "explanation")
        targets += _within(desk, operation, one) if group else [one]
    targets = list(dict.fromkeys(targets))
    if len(targets) > MOST_NODES:
        raise CanvasError(f"{len(targets):,} nodes are too many at once: name at most {MOST_NODES}.")
    do = OPERATIONS[operation]
    return list(do(desk, targets)) if do in (review, explanation) else [do(desk, one) for one in targets]


def _within(desk: Desk, operation: str, group: str = "") -> list[str]:
    """What an operation is for, in a group or anywhere: answers for scoring, if there are any; else every text."""
    texts = [i for i, node in desk.canvas.nodes.items() if node["type"] in ("text", "file") and desk.title(i)]
    texts = [i for i in texts if not group or group in desk.canvas.around(i)]
    answers = [i for i in texts if i in desk.answers]
    return answers if operation == "scoring" and answers else [i for i in texts if i not in desk.answers]
