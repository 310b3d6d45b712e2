"""The README's picture, from a real run: ``python experiments/pictures.py`` (needs kaleido and a Chromium)."""

from __future__ import annotations

from pathlib import Path

from workbench import Workbench

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "Compare The Wedding Banquet and Eat Drink Man Woman"


def main() -> None:
    """Ask twice, so that models are loaded, and draw the second run's timeline."""
    with Workbench.open(ROOT / ".workbench") as wb:
        wb.add_knowledge("film", [ROOT / "data" / "films.jsonl"])
        for _ in range(2):
            run = wb.ask(QUESTION, kb="film", incognito=True)
        figure = run.timeline().update_layout(title=QUESTION)
        figure.write_image(ROOT / "notebooks" / "images" / "timeline.png", width=1100, height=620, scale=1.5)


if __name__ == "__main__":
    main()
