"""The pictures of real runs: ``python experiments/pictures.py``."""

from __future__ import annotations

import sys
from pathlib import Path

from workbench import Workbench

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = {
    "en": "Compare The Wedding Banquet and Eat Drink Man Woman",
    "zh": "对比《喜宴》和《饮食男女》的风格",
}


def main(folder: Path, workspace: Path) -> None:
    """Draw every picture of a run in each language, once its models are loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    with Workbench.open(workspace) as wb:
        wb.add_knowledge("film", [ROOT / "data" / "films.jsonl"])
        wb.ask(QUESTIONS["en"], kb="film", incognito=True)
        for language, question in QUESTIONS.items():
            run = wb.ask(question, kb="film", incognito=True)
            drawings = {"dag": run.dag(), "timeline": run.timeline(), "graph": run.graph()}
            drawings |= {"knowledge": run.knowledge()}
            for name, drawing in drawings.items():
                drawing.save(folder / f"{name}-{language}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pictures"), ROOT / ".workbench")
