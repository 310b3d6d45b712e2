"""Ask one call of a run again and again: each other reply is a fork of the run, and one of the runs is chosen.

several = sample(run, "writer", 5)                      # the answer that most give
several = sample(run, "planner", 3, choose="judge")     # by the model of the role judge
several = sample(run, "reflector", 3, choose=lambda run: len(run.evidence))
several.best.answer, several.to_frame()
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import convert_to_messages

from workbench.errors import RunError
from workbench.models.chat import IN_WORDS, Limits, call_model, reply_text
from workbench.parts.evaluate.answers import grades, judged_texts, normal
from workbench.records.tape import places
from workbench.runs.run import Run
from workbench.state import Data
from workbench.text import clean, unmarked

if TYPE_CHECKING:
    import pandas


class Samples(NamedTuple):
    """The runs of one call's replies, the given run first; ``counts`` says how often each reply came."""

    runs: tuple[Run, ...]
    counts: tuple[int, ...]
    scores: tuple[Any, ...]

    @property
    def best(self) -> Run:
        """Return the run with the highest score; of equal ones the first."""
        return self.runs[self.scores.index(max(self.scores))]

    def to_frame(self) -> pandas.DataFrame:
        """Return one row per run."""
        import pandas

        rows = zip(self.runs, self.counts, self.scores, strict=True)
        table = [
            {"run_id": r.run_id, "times": n, "score": score, "answer": r.answer}
            for r, n, score in rows
        ]
        return pandas.DataFrame(table)


def sample(
    run: Run,
    role: str,
    k: int,
    *,
    choose: str | Callable[[Run], Any] = "vote",
    temperature: float | None = 0.8,
) -> Samples:
    """Return the run and its forks by other replies to a call, ``k`` replies in all, with a score each.

    Args:
        run: an ended run.
        role: whose first call: planner, reflector, writer, or another that fills in a form.
        k: replies, with the one that the run has.

        choose: ``vote`` (how many say the same, then how far they cite the same), ``judge`` or the name of a model
            (faithful and correct by that judge, then by vote), or a function of a run whose highest value wins.
        temperature: of the other replies; None leaves it to the model.

    Raises:
        RunError: there is no such call, or it cannot be asked again.
        ModelError: the server failed.
    """
    most_replies = 20  # to one call
    calls = [
        (at, e)
        for at, e in places(run.tape()).items()
        if (e.kind, e.name) == ("model", role)
        and "tools" not in e.parts["input"]
        and not e.value.get("error")
    ]
    if not calls or not 1 <= k <= most_replies:
        reason = f"the run has {len(calls)} calls of {role} that can be asked again; {most_replies} times is the most"
        raise RunError(f"Cannot ask {k} times: {reason}.")
    wb = run._workspace
    place, call = calls[0]
    request = call.parts["input"]
    model = wb.ports(request["model"]).models["judge"]
    own = "".join(call.value["chunks"]) if "chunks" in call.value else call.value["text"]
    limits = Limits.from_settings(wb.settings)
    counts = Counter([own, *wb.call(_replies(model, request, k - 1, temperature, limits))])
    forks = [run.fork(at=place, result=text, wait=False) for text in counts if text != own]
    runs = (run, *(fork.wait() for fork in forks))
    weights = tuple(counts.values())
    if callable(choose):
        return Samples(runs, weights, tuple(map(choose, runs)))
    scores = [*_votes(runs, weights)]
    if choose != "vote":
        judged = _judged(wb, "" if choose == "judge" else choose, runs)
        scores = [(*grade, *score) for grade, score in zip(judged, scores, strict=True)]
    return Samples(runs, weights, tuple(scores))


async def _replies(
    model: Any, request: Data, k: int, temperature: float | None, limits: Limits
) -> list[str]:
    """Return ``k`` replies, asked for at the same time; a form is asked for in words, which every server takes."""
    messages = convert_to_messages([tuple(message) for message in request["messages"]])
    if schema := request.get("schema"):
        messages += convert_to_messages([("human", IN_WORDS + json.dumps(schema))])
    options = {} if temperature is None else {"temperature": temperature}

    async def ask() -> str:
        return clean(reply_text(await model.ainvoke(messages, **options)))

    return await asyncio.gather(*(call_model(model, ask, limits) for _ in range(k)))


def _votes(runs: Sequence[Run], counts: Sequence[int]) -> Iterator[tuple[float, ...]]:
    """Yield for each run how many replies lead to its answer, and how far all replies cite its sources."""
    answers = [normal(unmarked(run.answer)) for run in runs]
    cited = [{citation["result_id"] for citation in run.citations} for run in runs]
    for text, mine in zip(answers, cited, strict=True):
        same = sum(n for answer, n in zip(answers, counts, strict=True) if answer == text)
        shares = [
            n * len(mine & theirs) / max(1, len(mine | theirs))
            for theirs, n in zip(cited, counts, strict=True)
        ]
        yield same, round(sum(shares), 6)


def _judged(wb: Any, judge: str, runs: Sequence[Run]) -> list[tuple[bool, bool]]:
    ports = wb.ports(judge)
    if "judge" not in ports.models:
        raise RunError("There is no model that judges. Set WORKBENCH_MODELS__JUDGE.")
    limit = wb.settings.merge_max_characters
    texts = [judged_texts({"question": run.query}, run, limit) for run in runs]
    return [
        (bool(g and g.faithful), bool(g and g.correct)) for g in wb.call(grades(ports, texts))
    ]
