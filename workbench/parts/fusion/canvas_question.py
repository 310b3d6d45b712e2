"""The question of a canvas in a knowledge base: its base, its text, the names that it is about.

The base is read, never a file: a client of a server that names a path opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, Literal, cast, get_args

from workbench.errors import WorkbenchError, shown
from workbench.parts.fusion.canvas import CanvasError, is_name
from workbench.ports import KnowledgeBase, KnowledgeBases
from workbench.text import detect_language
from workbench.views.labels import Labels

Operation = Literal["decomposition", "scoring", "explanation", "verification", "review"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


def known_operation(name: Any) -> Operation:
    """Return the operation of that name.

    Raises:
        CanvasError: there is none; lists those that there are.
    """
    if name not in OPERATIONS:
        raise CanvasError(f"There is no operation {shown(name)}. Known: {', '.join(OPERATIONS)}.")
    return cast(Operation, name)


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
        hint = f"{', '.join(list(nodes)[:10])}{', ...' if len(nodes) > 10 else ''}"
        raise WorkbenchError(
            f"There is no node {shown(missing[0])} in {shown(canvas)}. It has: {hint}."
        )
    titles = list[str]()
    texts = list[str]()
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
