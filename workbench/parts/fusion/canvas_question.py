"""What a canvas in a knowledge base gives the fusion graph: which base, what is asked, whose names are meant.

The base is read, never a file: a client of a server that names a path opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from workbench.errors import WorkbenchError, shown
from workbench.knowledge.reading.canvas import is_name
from workbench.ports import KnowledgeBase, KnowledgeBases
from workbench.text import language_of
from workbench.views.labels import Labels

_LONGEST = 400
"""Characters of a node's text in a question."""


def nodes_of(base: KnowledgeBase, canvas: str) -> dict[str, str]:
    """Node of the canvas -> its document; {} where the base does not hold it."""
    name = f"{PurePath(canvas.replace(chr(92), '/')).name}#"
    found = ((one, *one.partition(name)) for one in base.select())
    return {node: one for one, folder, held, node in found if held and (not folder or folder.endswith("/"))}


def base_of(bases: KnowledgeBases, canvas: str, names: Iterable[str] = ()) -> str:
    """Return the first base, of these or of all, that holds the canvas.

    Raises:
        WorkbenchError: none does; how to bring it in.
    """
    known = list(names) or bases.names()
    found = next((name for name in known if nodes_of(bases.get(name), canvas)), "")
    if not found:
        raise WorkbenchError(
            f"No canvas {shown(canvas)} in {', '.join(known) or 'any knowledge base'}. "
            f"Bring it in: wb.add_knowledge('NAME', [{shown(canvas)}])."
        )
    return found


def question_of(base: KnowledgeBase, canvas: str, operation: str, targets: Sequence[str]) -> tuple[str, list[str]]:
    """Return what the operation asks of these nodes, or of the whole canvas, and the names that are meant by it.

    Scoring and verification ask for what their texts say, the others what they are; a question asks for itself.

    Raises:
        WorkbenchError: there is no such node; some that there are.
    """
    nodes = nodes_of(base, canvas)
    for one in targets:
        if one not in nodes:
            some = f"{', '.join(list(nodes)[:10])}{', ...' if len(nodes) > 10 else ''}"
            raise WorkbenchError(f"There is no node {shown(one)} in {shown(canvas)}. It has: {some}.")
    titles, texts = list[str](), list[str]()
    for doc_id in (nodes[one] for one in targets):
        passages, relations = base.passages_of([doc_id]), base.relations_of(f"doc:{doc_id}")
        text = " ".join(passage["text"] for passage in passages)
        for relation in relations:
            text = text.replace(f"{relation['sentence']}.", "")  # an edge is no sentence of it
        texts.append(" ".join(text.split())[:_LONGEST])
        ends = [end for one in relations for end in (one["source"], one["target"]) if end != f"doc:{doc_id}"]
        around = [entity["name"] for end in ends if (entity := base.entity(end)) and entity["doc_id"] in nodes.values()]
        titles += [passages[0]["title"]] if is_name(passages[0]["title"]) else filter(is_name, around)
    labels = Labels(language_of(" ".join(texts) or canvas))
    asking = [text for text in texts if text.endswith(("?", "？"))]
    if asking or (texts and operation in ("scoring", "verification")):
        return " ".join(asking or texts), titles
    called = labels("comma").join(dict.fromkeys(titles)) or PurePath(canvas).stem
    return labels(f"canvas_asks_{operation}", title=called), titles
