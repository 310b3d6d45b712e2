"""The work view: plan, side, evidence, timeline of one run. Actions are in the side."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from itertools import dropwhile
from typing import Any

import ipywidgets
from markupsafe import Markup

from workbench.errors import InvalidAnswer
from workbench.extensions import paths, provided, required
from workbench.plans import Plan
from workbench.records import proposals
from workbench.runs.run import Run, corpus_words
from workbench.runs.stored import found_pieces
from workbench.state import Data
from workbench.text import content_terms, titled
from workbench.tools.registry import check
from workbench.views.markup import Picture, draw
from workbench.views.plan import document_titles, needs_in_words
from workbench.views.plan_graph import forecast_text
from workbench.views.run import answer, evidence
from workbench.views.timeline import timeline
from workbench.widgets.by_hand import ByHand
from workbench.widgets.calls import Calls
from workbench.widgets.feedback import Verdict
from workbench.widgets.follow import Now
from workbench.widgets.futures import Decisions
from workbench.widgets.panel import Event, Pick, display_if, on_change, set_class
from workbench.widgets.plan import PlanEditor
from workbench.widgets.review import Review

MOST_TURNS = 8


class Working:
    """The parts of the work view and their actions.

    Args:
        bench: the bench; its question form is in the side.
    """

    def __init__(self, bench: Any):
        wb = bench.wb
        labels = bench.labels
        self._bench = bench
        self._wb = wb
        self._labels = labels
        self.ask = bench.ask
        self._run: Run | None = None
        self._document: Data = {}
        self._pieces: tuple[Any, list[Any]] = (None, [])
        self._words = dict[str, dict[str, str]]()
        self.calls = Calls(labels, wb.settings)
        self.node = Pick()
        self.verdict = Verdict(labels)
        memory = provided("widgets", "memory")
        self.memory = memory(labels) if memory else None
        self.reset()
        self.review = Review(labels, wb.runs, self._forecast)
        self.turns = Pick(listener=lambda event: bench.act(lambda: bench.put(wb.run(event.key))))
        self.answer = Pick(listener=self._on_answer)
        self.evidence = Pick(listener=self._on_evidence)
        self.timeline = Pick(listener=self._on_timeline)
        self.path = Pick()
        self.times = ipywidgets.VBox([self.timeline, self.node, self.path])
        self.fork_bar = Pick(listener=self._on_fork_bar)
        self.editor = PlanEditor(labels, partial(check, tools=wb.tools), wb.tools, self._forecast)
        self.past = Decisions(labels)
        self.by_hand = ByHand(labels)
        self.region = self._laid_out()
        self._connect()

    def _laid_out(self) -> ipywidgets.Box:
        knew = [self.memory.region] if self.memory else []
        below = [part.region for part in (self.verdict, self.calls, self.ask)]
        self.form = ipywidgets.VBox([self.editor.form, self.review.inside])
        self.result = ipywidgets.VBox([self.turns, self.answer, *knew, *below])
        # A wide bench has both in one column; in a narrow one the result takes the whole width.
        side = [self.form.add_class("wb-region-form"), self.result.add_class("wb-region-result")]
        regions = {
            "plan": self.editor.region,
            "side": ipywidgets.VBox(side),
            "evidence": self.evidence,
            "timeline": self.times,
            "past": self.past.region,
            "hand": self.by_hand.region,
        }
        self.grid = ipywidgets.Box(
            [region.add_class(f"wb-region-{name}") for name, region in regions.items()]
        )
        self.dock = ipywidgets.VBox([self.review.dock, self.fork_bar, self.calls.dock]).add_class(
            "wb-dock"
        )
        return ipywidgets.VBox([self.grid.add_class("wb-work"), self.dock])

    def _connect(self) -> None:
        run_and = self._run_and
        self.editor.observe(lambda _: self._edited(), ["plan", "problems", "foreseen"])
        self.editor.observe(lambda _: self._chosen(), "chosen")
        self.calls.observe(lambda _: self._edited(), "opened")
        self.review.band.on_event(self.editor.pressed)
        self.review.observe(lambda change: run_and(self._answer)(change.new), "response")
        for part in (self.past, self.calls, self.by_hand):
            part.on_request(run_and(lambda run, request: self._fork(run, **request["edits"])))
        self.verdict.on_request(
            run_and(lambda run, request: run.feedback(request["good"], request["note"]))
        )
        if self.memory:
            self.memory.on_request(run_and(self._steer))
        on_change(self.ask.kb, self._show_ask)

    def reset(self) -> None:
        """Forget what is chosen or edited, for another run."""
        self._piece = ""
        self._sentence = ""
        self._at = list[Any]()
        self.calls.close()
        self.node.show()
        display_if(self.calls.region, False)

    # show

    def show(self, run: Run | None, document: Data | None, now: Now) -> None:
        """Show a run; None shows the question form alone."""
        self._run = run
        self._document = document or {}
        status = self._document.get("status", "")
        moved = self._moved_on()
        for part in (self.editor.region, self.times, self.dock):
            display_if(part, document)
        asks = status not in ("running", "paused", "interrupted")
        ended = asks and document
        for part in (self.past, self.by_hand):
            display_if(part.region, ended)
        set_class(self.grid, "wb-nothing", not document)
        set_class(self.grid, "wb-deciding", status == "paused")
        display_if(self.ask.region, asks)
        if asks:
            self._show_ask()
        if run is None or document is None:
            for part in (self.evidence, self.form, *self.result.children):
                display_if(part, part is self.ask.region)
            return
        self._read_pieces(run)
        self._document = document = {**document, "pieces": self._pieces[1], **self._words}
        # a report, whose plan has run
        writes = proposals.kind(document["review"] or {}) in paths("forms")
        self.editor.show(
            document, now.seconds(), editable=status in ("paused", "done") and not writes
        )
        self._show_side(run, document, now)
        if moved and status == "done":
            self.answer.reveal("answer")
        self._show_evidence()
        display_if(self.evidence, self._pieces[1])
        self.timeline.show(timeline(document, self._labels))
        if ended:
            self.past.show(document)
            self.by_hand.show(run)

    def _show_ask(self) -> None:
        follows = self._bench.follows_up()
        knowledge = self._wb.knowledge
        bases = {
            name: knowledge.get(name).about()["counts"]["documents"] for name in knowledge.names()
        }
        self.ask.show(bases, [] if follows else self._examples(), follows=follows)

    def pass_time(self, now: Now) -> None:
        """Show the time that the running steps have taken."""
        if self._document and now.steps:
            self.editor.show(self._document, now.seconds())

    def _moved_on(self) -> bool:
        """Return whether the run came to another decision, or ended, and close the form of a step if so."""
        at = [
            self._document.get("status"),
            (self._document.get("review") or {}).get("review_id"),
        ]
        moved = at != self._at
        self._at = at
        if moved:
            self.editor.chosen = ""
        return moved

    def _show_side(self, run: Run, document: Data, now: Now) -> None:
        paused = document["status"] == "paused" and document["review"]
        display_if(self.review.inside, paused)
        display_if(self.answer, not paused)
        if document["status"] != "running":
            picture = run.graph().markup
            self.path.show(draw("plan.path", self._labels, picture=picture))
            before = self._conversation(run)
            self.turns.show(draw("run.turns", self._labels, rows=before))
            display_if(self.turns, before)
            calls = run.calls()
            self.calls.show(run, calls)
            display_if(self.calls.region, calls)
        done = document["status"] == "done"
        judged = done and not run.options["incognito"]
        display_if(self.verdict.region, judged)
        if judged:
            self.verdict.show(run)
        if self.memory:
            display_if(self.memory.region, done)
            if done:
                self.memory.show(run, self._wb.memory)
        if not paused:
            self.answer.show(self._answered(run, document, now))
        self._chosen()
        self._edited()

    def _answered(self, run: Run, document: Data, now: Now) -> Picture | Markup:
        """Return the answer, or the report: its sections while they are written, then its text."""
        status = document["status"]
        if "report" in run.options and status not in ("failed", "cancelled"):
            view, shown = "report_so_far", now.sections
            if status == "done":
                view, shown = "report", document["citations"]
            if status != "done" or run.report.text:
                draw_report: Callable[..., Markup] = required("views", view, "reports")
                return draw_report(run.report, shown, self._labels)
        return answer(document, self._labels, now.written)

    def _edited(self) -> None:
        """Update the panel that acts on the edited plan."""
        document = self._document
        editor = self.editor
        status = document.get("status")
        edits = editor.edits
        if status == "paused" and document["review"]:
            plan = editor.plan if edits else None
            self.review.show(document, plan=plan, problems=editor.problems)
        forks = status == "done" and edits > 0
        if forks:
            labels = self._labels
            message = forecast_text(editor.foreseen, labels) if editor.foreseen else ""
            self.fork_bar.show(
                draw(
                    "run.fork_bar",
                    labels,
                    edits=edits,
                    problems=len(editor.problems),
                    message=message,
                )
            )
        bars = (
            (self.review.dock, status == "paused"),
            (self.fork_bar, forks),
            (self.calls.dock, self.calls.opened),
        )
        for bar, shown in bars:
            display_if(bar, shown)
        display_if(self.dock, any(shown for _, shown in bars))

    def _chosen(self) -> None:
        """Show the form of a step in place of the reasons."""
        chosen = self.editor.chosen
        for part in (self.review.why, self.review.form):
            display_if(part, not chosen)
        set_class(self.grid, "wb-choosing", chosen)
        display_if(self.form, chosen or self._document.get("status") == "paused")

    def _show_evidence(self) -> None:
        if (run := self._run) is None:
            return
        pieces = self._read_pieces(run)
        route = self._document["route_decision"] or {"extracted_entities": {"low_level": []}}
        status = self._document["status"]
        point = (self._document["review"] or {}).get("point")
        marks = status if status == "done" or point == "reflect" else ""
        titles = document_titles(self._document)
        names = route["extracted_entities"]["low_level"]
        self.evidence.show(
            evidence(
                pieces,
                self._document["figures"],
                self._labels,
                chosen=self._piece,
                sentence=self._sentence,
                question=" ".join(
                    [
                        self._document["query"],
                        *names,
                        *titles.values(),
                        *self._words["conditions"],
                    ]
                ),
                marks=marks,
                relevant=self._relevant(run),
                titles=titles,
                called=self._words["called"],
                needs=needs_in_words(self._document),
                max_characters=self._wb.settings.merge_max_characters,
            )
        )

    def _relevant(self, run: Run) -> dict[str, bool]:
        """Return what the person said of pieces, by key."""
        rows = self._wb.feedback(run=run.run_id)
        return {row["labels"]["piece"]: row["good"] for row in rows if "piece" in row["labels"]}

    def _read_pieces(self, run: Run) -> list[Any]:
        """Return what the run has found; read again only when there is more."""
        key = (run.run_id, self._document["status"], len(self._document["records"]))
        if key != self._pieces[0]:
            self._pieces = (key, found_pieces(run))
            titles = {piece["title"] for piece in self._pieces[1]}
            self._words = corpus_words(run, self._labels.language, titles)
        return self._pieces[1]

    def _forecast(self, plan: Plan, woken: Collection[str] | None = None) -> Any:
        if woken is None:
            woken = proposals.proposal(self._document.get("review") or {}).get("activate") or ()
        return (
            self._wb.runs.forecast(self._run, plan, woken) if self._run and plan.steps else None
        )

    def _examples(self) -> list[str]:
        """Return two questions about the chosen knowledge base, or about the first one."""
        names = self._wb.knowledge.names()
        labels = self._labels
        for name in filter(None, [self.ask.chosen(names), *names[:1]]):
            base = self._wb.knowledge.get(name)
            for a in base.about()["titles"][:5]:
                for hit in base.passages([key for key, _ in base.search("words", a, 5)]):
                    b = hit["title"]
                    # Two whose titles share a word can be compared.
                    if b != a and {*content_terms(a)} & {*content_terms(b)}:
                        a, b = titled(a), titled(b)
                        return [labels("example_compare", a=a, b=b), labels("example_about", b=b)]
        return []

    def _conversation(self, run: Run) -> list[Data]:
        """Return the earlier runs of the conversation, oldest first."""
        runs = self._wb.runs.lines(100, session_id=run.session_id, user_id=run.row["user_id"])
        since = [*dropwhile(lambda line: line["run_id"] != run.run_id, runs)]
        return since[1 : MOST_TURNS + 1][::-1]

    # actions

    def keyed(self, kind: str) -> None:
        """Handle a key of the bench."""
        calls = self.calls
        if kind == "escape" and calls.opened:
            calls.close()
        elif kind != "primary":
            self.editor.pressed(Event(kind))
        elif calls.edits:
            calls.submit()
        elif (status := self._document.get("status")) == "paused":
            self.review.submit()
        elif status == "done" and self.editor.edits:
            self._on_fork_bar(Event("fork"))
        elif status != "running":
            self.ask.submit()

    def _run_and(self, action: Callable[[Run, Data], Any]) -> Callable[[Data], None]:
        """Return a listener that performs an action on the run."""
        return lambda request: self._bench.act(
            lambda: action(self._run, request) if self._run else None
        )

    def _fork(self, run: Run, **edits: Any) -> None:
        self._bench.put(run.fork(wait=False, **edits))

    def _answer(self, run: Run, response: Data) -> Run | None:
        try:
            return run.answer_review(dict(response), wait=False)
        except InvalidAnswer as error:
            self.review.refuse(str(error))
            return None

    def _steer(self, run: Run, request: Data) -> None:
        if "without" in request:
            self._fork(run, without=[request["without"]])
        else:
            getattr(self._wb.memory, request["do"])(*request["with"], user=run.row["user_id"])

    def _on_fork_bar(self, event: Event) -> None:
        if event.kind == "discard":
            self.editor.pressed(event)
        elif event.kind == "fork" and self._run and not self.editor.problems:
            run = self._run
            plan = Plan.load(self.editor.plan)
            self._bench.act(lambda: self._fork(run, plan=plan))

    def _on_timeline(self, event: Event) -> None:
        """Show what the chosen node or step was given and what it gave, below its lane."""
        if self._run:
            self.node.show(draw("timeline.detail", self._labels, key=event.key, run=self._run))
            self.node.reveal(event.key)

    def _on_answer(self, event: Event) -> None:
        cited = self._document.get("citations", ())
        if event.kind == "ask":
            self.ask.message.value = event.key
            self.ask.message.focus()
        if event.kind == "evidence" and event.key.isdecimal() and int(event.key) < len(cited):
            citation = cited[int(event.key)]
            self._piece = citation["result_id"]
            self._sentence = citation["sentence"]
            self._show_evidence()
            if piece := self._piece_by_key(self._piece):
                self.evidence.reveal(piece["key"])

    def _on_evidence(self, event: Event) -> None:
        if event.kind == "choose":
            self._piece = "" if self._piece == event.key else event.key
            result_id = (self._piece_by_key(self._piece) or {}).get("result_id")
            cited = self._document.get("citations", ())
            sentences = (c["sentence"] for c in cited if c["result_id"] == result_id)
            self._sentence = next(sentences, "")
        kind, _, what = event.kind.partition(":")
        if kind in ("mark", "relevant") and (piece := self._piece_by_key(event.key)):
            self._bench.act(lambda: self._mark(piece, kind, what))
        else:
            self._show_evidence()

    def _piece_by_key(self, key: str) -> Any:
        return next(
            (piece for piece in self._pieces[1] if key in (piece["key"], piece["result_id"])),
            None,
        )

    def _mark(self, piece: Any, kind: str, what: str) -> None:
        """Label a piece, or decide on it: at a reflection as its answer, else in a fork; twice is undone."""
        key = piece["key"]
        if (run := self._run) is None:
            return
        if kind == "relevant":
            wanted = what == "yes"
            run.feedback(None if self._relevant(run).get(key) is wanted else wanted, piece=key)
            return
        marks = {key: "" if piece["mark"] == what else what}
        if self._document["status"] == "paused":
            self.review.decide("edit", {"pieces": marks})
        else:
            self._fork(run, pieces=marks)
