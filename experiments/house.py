"""Measure the house and draw it from the code: ``python -m experiments.house``; ``--write`` draws the page.

A room is a folder or a module of the first floor. Tokens are Python's own, without comments and layout; a docstring
counts as one. The budget of the whole stands in pyproject.toml under ``[tool.house]``.
"""

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "workbench"
PAGE = PROJECT / "docs" / "architecture.md"
LAYOUT = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER"}


def tokens(path: Path) -> int:
    """How much there is to read in a file."""
    found = tokenize.tokenize(io.BytesIO(path.read_bytes()).readline)
    return sum(tokenize.tok_name[token.type] not in LAYOUT for token in found)


def room_of(path: Path) -> str:
    """The room of a file: its folder on the first floor, or its own name there."""
    place = path.relative_to(PACKAGE).parts
    return place[0].removesuffix(".py")


def files() -> dict[str, list[Path]]:
    """Room -> its files; the package's own face is no room."""
    rooms: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path != PACKAGE / "__init__.py":
            rooms.setdefault(room_of(path), []).append(path)
    return rooms


def measured() -> dict[str, int]:
    """Room -> tokens."""
    return {room: sum(map(tokens, paths)) for room, paths in files().items()}


def settings() -> dict:
    """What pyproject.toml says of the house."""
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


def floors() -> list[list[str]]:
    """The floors from the street down, as the import contract has them."""
    [layers] = [
        c["layers"]
        for c in settings()["tool"]["importlinter"]["contracts"]
        if c["type"] == "layers"
    ]
    return [[room.strip() for room in floor.split("|")] for floor in layers]


@cache
def sentences() -> dict[str, str]:
    """Room -> its sentence in the package's docstring."""
    told = (
        ast.get_docstring(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))) or ""
    )
    return {m[1]: m[3] for m in re.finditer(r"^ {4}(\w+)(/|\.py) +(.+)$", told, re.M)}


def arrows() -> Counter[tuple[str, str]]:
    """(room, room that it imports) -> how many files do; imports inside functions too, those of types alone not."""
    import grimp

    graph = grimp.build_graph("workbench", exclude_type_checking_imports=True)
    counted: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules:
        seen = {
            imported.split(".")[1]
            for imported in graph.find_modules_directly_imported_by(importer)
            if "." in imported
        }
        if "." in importer:
            counted.update(
                (importer.split(".")[1], room) for room in seen if room != importer.split(".")[1]
            )
    return counted


def drawn() -> str:
    """The rooms as a Mermaid graph; an arrow that a longer way already shows is left out."""
    import networkx

    graph = networkx.transitive_reduction(networkx.DiGraph(list(arrows())))
    lines = ["```mermaid", "flowchart TD"]
    lines += [f"    {room}[{room}]" for floor in floors() for room in floor]
    lines += [f"    {above} --> {below}" for above, below in sorted(graph.edges)]
    return "\n".join([*lines, "```"])


def walked() -> str:
    """Both graphs as LangGraph draws them, and the file of each node."""
    import inspect

    from langgraph.graph.state import CompiledStateGraph

    from workbench.graphs.conversation import build_conversation
    from workbench.graphs.retrieval import build_retrieval

    rows = ["| node | file |", "| --- | --- |"]
    for name, graph in (
        ("conversation", build_conversation()),
        ("retrieval", build_retrieval().compile()),
    ):
        for node, held in graph.builder.nodes.items():
            runnable = held.runnable
            if not isinstance(runnable, CompiledStateGraph):
                function = inspect.unwrap(getattr(runnable, "afunc", None) or runnable.func)
                rows.append(
                    f"| {name}: {node} | `{Path(inspect.getfile(function)).relative_to(PROJECT)}` |"
                )
    drawing = build_conversation().get_graph(xray=True).draw_mermaid().strip()
    return "\n".join(["```mermaid", drawing, "```", "", *rows])


def table() -> str:
    """Return a row per room: what it is, and its tokens in thousands."""
    counts = measured()
    rows = ["| room | what it is | tokens, thousands |", "| --- | --- | ---: |"]
    rows += [
        f"| `{room}` | {sentence} | {counts[room] / 1000:.0f} |"
        for room, sentence in sentences().items()
    ]
    return "\n".join([*rows, f"| all | | {sum(counts.values()) / 1000:.0f} |"])


def page(text: str) -> str:
    """The page with its made parts brought up to date."""
    made = {"rooms": drawn(), "message": walked(), "table": table()}
    for name, part in made.items():
        text = re.sub(
            rf"(<!-- made: {name} -->\n).*?(\n<!-- end -->)",
            lambda m, p=part: m[1] + p + m[2],
            text,
            flags=re.S,
        )
    return text


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    counts = measured()
    for name, paths in files().items():
        print(f"{name:12} {len(paths):4} files {counts[name]:7,} tokens")
    budget = settings()["tool"]["house"]["tokens"]
    print(
        f"{'all':12} {sum(map(len, files().values())):4} files {sum(counts.values()):7,} of {budget:,} tokens"
    )
