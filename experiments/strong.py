"""Twenty questions, answered as a strong model would: by the rules, by a model's plan, and by a model that calls tools.

    python -m experiments.strong

The replies in ``data/strong/tape.jsonl`` were written by a strong model that read the prompts, once. ``Strong`` says
them again: it takes the numbers of the passages from the prompt that it is sent, and where a prompt does not show the
passage that it needs, it cannot cite it. So the table shows what reaches a model, and what it costs; it does not show
how good a model is.

``input`` and ``tokens`` are per question, input alone and with output. Prompts as they were before are not kept, so no
share of what they took is printed.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from workbench import Workbench
from workbench.graphs.answer_check import MARKS
from workbench.records.prompts import Prompts
from workbench.records.tape import estimated_tokens

DATA = Path(__file__).parents[1] / "data"
TAPE = [
    json.loads(line) for line in (DATA / "strong" / "tape.jsonl").read_text("utf-8").splitlines()
]
ROLES = {prompt.system.strip().splitlines()[0]: prompt.role for prompt in Prompts().values()}
_PLACE = re.compile(r"⟦(.+?)⟧")
_LABEL = re.compile(r"^\[([^\]\s]+)\] ", re.M)


class Strong(BaseChatModel):
    """A chat model that says what is on the tape, for every role and for tools."""

    @property
    def _llm_type(self) -> str:
        return "strong"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(self, messages: list[BaseMessage], *_: Any, **bound: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=reply(messages))])

    def _stream(
        self, messages: list[BaseMessage], *_: Any, **bound: Any
    ) -> Iterator[ChatGenerationChunk]:
        said = reply(messages)
        yield ChatGenerationChunk(
            message=AIMessageChunk(said.content, usage_metadata=said.usage_metadata)
        )


def reply(messages: Sequence[BaseMessage]) -> AIMessage:
    """What the tape says to these messages."""
    role = ROLES[messages[0].text.strip().splitlines()[0]]
    seen = "\n".join(message.text for message in messages)
    said: Any = {"sentences": _verdicts(messages[-1].text)} if role == "checker" else None
    calls: list[Any] = []
    if said is None:
        entry = next(entry for entry in TAPE if entry["question"] in seen)
        if role == "agent":
            turns = sum(message.type == "ai" for message in messages)
            calls = entry["passes"][turns] if turns < len(entry["passes"]) else []
            said = "" if calls else _filled(entry["answer"], seen)
        else:
            says: Any = {"planner": _plan, "reflector": _reflect, "writer": _write}[role]
            said = says(entry, seen)
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    read = estimated_tokens(seen)
    written = estimated_tokens(text + json.dumps(calls))
    made = [{"name": tool, "args": args, "id": f"c{n}"} for n, (tool, args) in enumerate(calls)]
    usage: Any = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    return AIMessage(text, tool_calls=made, usage_metadata=usage)


def _steps(calls: Sequence[Any]) -> list[Any]:
    return [
        {"name": f"s{n}", "objective": "search", "tool": tool, **args}
        for n, (tool, args) in enumerate(calls)
    ]


def _write(entry: Any, seen: str) -> str:
    return _filled(entry["answer"], seen)


def _plan(entry: Any, _: str) -> Any:
    return {"steps": _steps(entry["passes"][0]), "acceptance_criteria": list(entry["needs"])}


def _reflect(entry: Any, seen: str) -> Any:
    found = {
        need: _label(phrase, seen) if phrase else "" for need, phrase in entry["needs"].items()
    }
    needs = [
        {
            "need": n,
            "passages": [int(label)] if label else [],
            "verdict": "met" if label else "missing",
        }
        for n, label in enumerate(found.values(), 1)
    ]
    enough = all(found.values())
    made = seen.rpartition("</evidence>")[2]
    new = [
        [call for call in calls if str(call[1].get("query")) not in made]
        for calls in entry["passes"][1:]
    ]
    steps = [] if enough else _steps(next(filter(None, new), []))
    return {
        "needs": needs,
        "enough": enough,
        "stop": not enough and not steps,
        "steps": steps,
        "reasoning": "As read.",
    }


def _verdicts(text: str) -> list[Any]:
    count = len(re.findall(r"^\d+\. ", text.partition("</answer>")[0], re.M))
    return [{"sentence": n, "verdict": "supported"} for n in range(1, count + 1)]


def _filled(answer: str, seen: str) -> str:
    """The answer, with the labels of the passages that hold its phrases, and the count that was shown."""
    counts = re.search(r"(?:Totals: |总计：|total: )(\d+)", seen)

    def place(match: re.Match[str]) -> str:
        if match[1] == "#":
            return counts[1] if counts else "?"
        label = _label(match[1], seen)
        return f"[{label}]" if label else ""

    return _PLACE.sub(place, answer)


def _label(phrase: str, seen: str) -> str:
    """The label of the first passage that holds a phrase, or has it in its title."""
    starts = [*_LABEL.finditer(seen)]
    for start, after in zip(
        starts, [*(match.start() for match in starts[1:]), len(seen)], strict=True
    ):
        if phrase in seen[start.start() : after]:
            return start[1]
    return ""


def bases(wb: Workbench) -> None:
    """Index the three corpora."""
    wb.add_knowledge("film", [DATA / "films.jsonl"])
    wb.add_knowledge("notes", [DATA / "strong" / "notes"])
    wb.add_knowledge("musique", [DATA / "strong" / "musique.jsonl"])


def ways(model: Any) -> dict[str, Any]:
    """The options of each way to answer; what is not named stays with the rules."""

    def only(*roles: str) -> dict[str, Any]:
        return {"all": "rules", **dict.fromkeys(roles, model)}

    agent = {"worker": "tool_agent"}
    return {
        "one search": {"worker": "hybrid_agent", "models": only()},
        "rules": {"models": only()},
        "plan": {"models": only("planner", "reflector", "writer", "checker")},
        "search, then plan": {
            "models": only("planner", "reflector", "writer", "checker"),
            "settings": {"search_first": True},
        },
        "agent": {**agent, "models": only("agent", "checker")},
        "agent and writer": {**agent, "models": only("agent", "writer", "checker")},
    }


def measured(wb: Workbench, entry: Any, options: Any) -> dict[str, Any]:
    """One question, one way: whether it is right and unmarked, and what it took."""
    run = wb.ask(entry["question"], kb=entry["kb"], **options)
    total = run.calls().total()
    return {
        "question": entry["question"],
        "right": all(gold in run.answer for gold in entry["gold"]),
        "marked": any(mark in run.answer for marks in MARKS.values() for mark in marks),
        "calls": total["calls"],
        "steps": len(run.plan.steps),
        "input": total["input"],
        "tokens": total["tokens"],
        "answer": run.answer,
    }


def main() -> None:
    import pandas

    with tempfile.TemporaryDirectory() as folder, Workbench.open(folder) as wb:
        bases(wb)
        rows = [
            {"way": way, **measured(wb, entry, options)}
            for way, options in ways(Strong()).items()
            for entry in TAPE
        ]
    frame = pandas.DataFrame(rows)
    if "-v" in sys.argv:
        sys.stdout.write(
            frame[["way", "question", "right", "marked", "calls", "answer"]].to_csv(sep="\t")
        )
    by = frame.groupby("way", sort=False)[
        ["right", "marked", "calls", "steps", "input", "tokens"]
    ]
    how = {
        "right": "sum",
        "marked": "sum",
        **dict.fromkeys(("calls", "steps", "input", "tokens"), "mean"),
    }
    sys.stdout.write(f"{by.agg(how).to_string()}\n")


if __name__ == "__main__":
    main()
