"""An experiment as it runs in a notebook: how far it is, and the bench's table of runs, narrowed to its own."""

from __future__ import annotations

import time
from typing import Any

import ipywidgets
from IPython.display import display

from workbench.state import Data, Progress
from workbench.views.labels import Labels
from workbench.views.markup import draw
from workbench.widgets.panel import CellRoot
from workbench.widgets.runs import RunTable


class Live(CellRoot):
    """Progress and time left, over the runs of an experiment; a row opens its run, and marked ones are compared.

    Args:
        experiment: it follows, as ``progress`` of ``wb.experiments.run`` or after its end.
    """

    def __init__(self, experiment: Any):
        labels = Labels(experiment._wb.settings.lang or "en")
        self._experiment = experiment
        self._wb = experiment._wb
        self._labels = labels
        status = experiment.status()
        self._began = time.monotonic()
        self._drawn = 0.0
        self._before = status["done"]
        self.bar = ipywidgets.IntProgress()
        self.text = ipywidgets.Label()
        self.opened = ipywidgets.Output()
        self.state = ipywidgets.HTML()
        self._going = "running"
        self.table = RunTable(labels, self._wb)
        self.table.search.value = experiment.name
        self.table.on_request(self._open)
        head = ipywidgets.HBox([self.bar, self.text, self.state])
        super().__init__([head, self.table.region, self.opened], labels.html_lang)
        self.tell(
            experiment.name,
            status["cells"] - status["waiting"] - status["running"],
            status["cells"],
        )

    def __enter__(self) -> Progress:
        """Show it until the block ends, with what the experiment tells of itself, and return ``tell``."""
        send = self._experiment.tell

        def tell(status: str, text: str) -> None:
            send(status, text)
            self.announce(status)

        self._experiment.tell = tell
        view = {"model_id": self.model_id, "version_major": 2, "version_minor": 0}
        self._shown = display(
            {"application/vnd.jupyter.widget-view+json": view}, raw=True, display_id=True
        )
        return self.tell

    def __exit__(self, *_: object) -> None:
        """Leave nothing: a widget would be an error in a notebook that is opened again."""
        self._shown.update({}, raw=True)
        self.close()

    def tell(self, name: str, done: int, total: int) -> None:
        """Show how many cells have ended, and what the others will take at the pace of those that ran here."""
        # Seconds between two drawings of the table.
        every_s = 2.0
        now = time.monotonic()
        ran = done - self._before
        self.bar.max, self.bar.value = max(1, total), done
        self.announce(self._going)
        left = (now - self._began) / ran * (total - done) if ran > 0 else 0.0
        self.text.value = self._labels(
            "experiment_progress", name=name, done=done, total=total, left=f"{left:.0f}"
        )
        if now - self._drawn > every_s or done == total:
            self._drawn = now
            self.table.show()

    def announce(self, status: str) -> None:
        """Show a status, which appears in a corner of the window too where this table is out of view."""
        if status == "failed":  # also after the next cell
            self._going = status
        word = f"{self._experiment.name}: {self._labels(status)}"
        shown = draw("parts.announced", status=status, text=word, labels=self._labels)
        self.state.value = str(shown)

    def _open(self, request: Data) -> None:
        runs = request["runs"]
        self.opened.clear_output()
        with self.opened:
            display(self._wb.run(*runs) if request["do"] == "open" else self._wb.compare(*runs))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.text.value}
