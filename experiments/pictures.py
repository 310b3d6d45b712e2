"""The pictures of real runs: ``python experiments/pictures.py`` (PNG needs kaleido and a Chromium)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plotly.io import write_images

from workbench import Workbench

if TYPE_CHECKING:
    from workbench.views.figures.picture import Picture

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = {
    "en": "Compare The Wedding Banquet and Eat Drink Man Woman",
    "zh": "对比《喜宴》和《饮食男女》的风格",
}


def main(folder: Path, workspace: Path) -> None:
    """Draw every picture of a run in each language, once its models are loaded; the README's timeline goes home."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[Path, Picture] = {}
    with Workbench.open(workspace) as wb:
        wb.add_knowledge("film", [ROOT / "data" / "films.jsonl"])
        wb.ask(QUESTIONS["en"], kb="film", incognito=True)
        for language, question in QUESTIONS.items():
            run = wb.ask(question, kb="film", incognito=True)
            drawings = {"dag": run.dag(), "timeline": run.timeline(), "graph": run.graph()}
            drawings |= {"knowledge": run.knowledge()}
            for name, drawing in drawings.items():
                drawing.save(folder / f"{name}-{language}.svg")
            drawn[folder / f"findings-{language}.png"] = run.findings()
            if language == "en":
                drawings["timeline"].save(ROOT / "notebooks" / "images" / "timeline.svg")
    sizes = {side: [picture.layout[side] for picture in drawn.values()] for side in ("width", "height")}
    write_images(list(drawn.values()), list(drawn), scale=1.5, **sizes)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pictures"), ROOT / ".workbench")
