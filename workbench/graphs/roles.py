"""Ask the model of a role: fill in the prompt, record the call, check the reply, and ask for one repair.

Every call is one effect of kind ``model`` under the role's name: the messages as sent, the reply as received, and the
counted tokens. A failed call is one too, so that a replay fails in the same way. A reply is only a proposal:
``ask_model`` returns no form when it cannot be used, and the caller continues as without a model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from workbench.errors import ModelError, UnfitCondition, UnknownKnowledge
from workbench.models.chat import (
    Limits,
    filled_in,
    reply_text,
    sampling,
    thinking_text,
    token_usage,
)
from workbench.models.wire import tell
from workbench.plans import ENDED_WELL, Plan, format_condition, last_records, problem
from workbench.ports import Bases, Context, KnowledgeBase, Tool, Tools
from workbench.records.figures import ResultsByStep
from workbench.records.prompts import Prompt
from workbench.records.spending import price, spent
from workbench.settings import BY_MODEL, RULES, Settings
from workbench.state import Condition, Data, Evidence, Json, Message, Records, RetrievalResult
from workbench.text import clean, detect_language
from workbench.views.labels import Labels

Form = TypeVar("Form", bound=BaseModel)


class ModelForm(BaseModel, extra="forbid"):
    """A form for a model to fill in; unknown fields are refused."""


NONE = "—"
"""The text of an empty slot of a prompt."""


def rules_bind(plan: Data | None, settings: Settings) -> bool:
    """Check whether conditions that the rules read in the question bind: not where a model made the plan."""
    planner = (plan.get("metadata") or {}).get("planner") if plan else ""
    return settings.bounds == "strict" and planner != BY_MODEL


def model_plans(context: Context) -> bool:
    """Check whether a model plans: it has a model, and no custom planner is registered."""
    return "planner" in context.models and getattr(context.planner, "name", "") == RULES


class Reply(NamedTuple):
    """A model's reply: the filled-in form, or None; the faults of its replies; whether it needed the repair."""

    form: Any
    refused: list[str]
    mended: bool = False


async def ask_model(
    context: Context,
    role: str,
    form: type[Form],
    slots: Mapping[str, str],
    *,
    question: str,
    problems: Callable[[Form], Sequence[str]] = lambda _: (),
    at: str = "",
    prompt: str = "",
    language: str = "",
    quiet: bool = False,
) -> Reply:
    """Ask the role's model to fill in a form; once more, with the problems, when it cannot be used.

    Args:
        context: the ports.
        role: one of ``settings.ROLES`` whose model there is.
        form: what is filled in: every list and text bounded.
        slots: for the prompt.
        question: its language chooses the prompt.
        problems: returns the faults of a filled-in form, each a sentence with the fix.
        at: where in the run, as ``"pass 2"``, for people.
        prompt: the name of its prompt, where the role has several.
        language: of the prompt, where it is not the question's.
        quiet: do not report that the rules take over.
    """
    language = language or detect_language(question)
    prompt_template = context.prompts.for_language(prompt or role, language)
    refused = list[str]()
    messages = prompt_template.messages(slots)

    def read(text: str) -> tuple[Form | None, list[str]]:
        filled, wrong = read_form(text, form)
        return filled, wrong or (list(problems(filled)) if filled is not None else [])

    for attempt in (1, 2):
        if over := budget_spent(context):
            return Reply(None, [*refused, over])
        reply = await _reply(
            context,
            role,
            messages,
            form,
            prompt_template,
            f"{at} repair".strip() if attempt == 2 else at,
            read,
        )
        if reply.get("error"):
            refused.append(reply["error"])
            break
        filled, wrong = read(reply["text"])
        if filled is not None and not wrong:
            return Reply(filled, refused, attempt == 2)
        refused += wrong
        messages = [
            *messages,
            ["ai", reply["text"]],
            ["human", "\n".join([Labels(language)("form_again"), *wrong])],
        ]
    if context.settings.on_failure == "raise" and not quiet:
        raise ModelError(
            f"The model gave nothing usable as {role}, and WORKBENCH_ON_FAILURE is 'raise': {refused[-1]}"
        )
    if not quiet:
        tell(f"The model gave nothing usable as {role}, so the rules do it. {refused[-1]}")
    return Reply(None, refused)


async def _reply(
    context: Context,
    role: str,
    messages: Sequence[Sequence[str]],
    form: type[BaseModel],
    prompt_template: Prompt,
    at: str,
    read: Callable[[str], tuple[Any, list[str]]],
) -> Json:
    model = context.models[role]

    async def call() -> Json:
        try:
            message = await filled_in(
                model, [tuple(m) for m in messages], form, Limits.from_settings(context.settings)
            )
        except ModelError as error:  # kept on the tape; the run goes on without the model
            return {"error": str(error), "at": at}
        thought = {"thought": clean(thoughts)} if (thoughts := thinking_text(message)) else {}
        text = clean(reply_text(message))
        return {
            "text": text,
            "wrong": read(text)[1],  # what becomes of a reply is shown from the tape
            "at": at,
            **thought,
            **accounted(context, role, prompt_template, token_usage(message)),
        }

    args = {
        "model": context.settings.role_model(role),
        "messages": messages,
        "schema": form.model_json_schema(),
    }
    effect = await context.tape.effect("model", role, args, call)
    return dict(effect.value)


def accounted(
    context: Context, role: str, prompt: Prompt, usage: Mapping[str, int] | None
) -> Json:
    """Return the tape's record of a reply: tokens, price, version of the prompt, sampling."""
    model = context.models[role]
    money = price(context.prices, context.settings.role_model(role), usage)
    return {
        "prompt": f"{prompt.name} {prompt.label}",
        "usage": usage,
        "money": money,
        "sampling": sampling(model),
    }


def read_form(text: str, form: type[Form]) -> tuple[Form | None, list[str]]:
    """Return the form in a reply, or its faults: a model may write around its JSON, and leave commas in it."""
    wrong = list[str]()
    # the words before the form may have braces too: it may begin at any of the first
    for begin in [match.start() for match in re.finditer(r"\{", text)][:20] or [0]:
        try:
            content, _ = _LENIENT.raw_decode(
                _TRAILING.sub(lambda match: match[1] or "", text[begin:])
            )
            return form.model_validate_json(json.dumps(content)), []
        except (ValidationError, ValueError, RecursionError) as error:
            faults = error.errors()[:5] if isinstance(error, ValidationError) else []
            messages = [
                f"{'.'.join(map(str, e['loc'])) or 'the reply'}: {e['msg']}." for e in faults
            ]
            wrong = wrong or messages or [f"the reply: {error}."]
    return None, wrong


_LENIENT = json.JSONDecoder(strict=False)  # a line break within a string is no fault
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def budget_spent(context: Context) -> str:
    """Return why no model may be asked any more in this run; "" while one may."""
    tokens = context.settings.token_budget
    money = context.settings.money_budget
    if not tokens and not money:
        return ""
    sofar = spent(context.tape.calls())
    if tokens and sofar.tokens >= tokens:
        return f"{sofar.tokens:,} of {tokens:,} tokens are spent (WORKBENCH_TOKEN_BUDGET)."
    if money and sofar.money >= money:
        return f"{sofar.money:.4f} of {money:g} are spent (WORKBENCH_MONEY_BUDGET)."
    return ""


def left(context: Context, seconds: float) -> str:
    """Return what a run may still take, for a prompt."""
    tokens = context.settings.token_budget
    money = context.settings.money_budget
    sofar = spent(context.tape.calls())
    parts = [f"{max(0.0, seconds):.0f} s of search"]
    parts += [f"{max(0, tokens - sofar.tokens):,} tokens"] if tokens else []
    parts += [f"{max(0.0, money - sofar.money):.4f} of money"] if money else []
    return ", ".join(parts)


def numbered(items: Sequence[str]) -> str:
    """Return a list with one item per line, counted from 1."""
    return "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1)) or NONE


def window(state: Data, context: Context) -> list[Json]:
    """Return the last messages before the one that is answered, as they are stored."""
    size = context.settings.history_window
    conversation = state.get("conversation_id", "")
    if not size or not conversation:
        return []
    return context.conversations.list_messages(
        conversation, size, before=state.get("user_message_id") or None
    )


def read_history(state: Data, context: Context) -> list[Message]:
    """Return the last messages before the one that is answered."""
    return history_messages(window(state, context))


def history_messages(rows: Iterable[Data]) -> list[Message]:
    """Return rows of the store as messages of a history."""
    return [
        Message(
            role=row["role"],
            content=row["content"],
            created_at=row["created_at"],
            only_noted=bool((row.get("debug") or {}).get("only_noted")),
        )
        for row in rows
    ]


def history_text(history: Sequence[Message], window: int) -> str:
    """Return the last messages, one per line."""
    lines = [
        f"{m['role']}: {' '.join(clean(m['content']).split())[:500]}"
        for m in (history[-window:] if window else [])
    ]
    return "\n".join(lines) or NONE


# --- What prompts are filled in with: what a corpus holds, what tools take, what ran, and the evidence ---

NEEDED = {
    "enrichment": "source",
    "discover": "fields",
    "local_search": "entities",
    "global_search": "entities",
    "chain_exploration": "entities",
}
"""What a knowledge base must have for a tool: a source outside, typed fields, or a graph of entities."""
_VALUES, _KINDS, _LONGEST_VALUE = 8, 20, 400


def evidence_text(results: Evidence, limit: int, numbers: Sequence[int] = ()) -> str:
    """Return the evidence with its numbers, titles, typed fields, sources and scores, as many as fit, at least one.

    ``numbers`` are those that the pieces have elsewhere; without them they count from 1.

    >>> piece = {"evidence": "It is green.", "score": 0.9, "metadata": {"title": "Moss", "fields": {"year": 2003}}}
    >>> evidence_text([piece], 1000)
    '[1] Moss (year: 2003; score 0.90)\\nIt is green.'
    """
    blocks = []
    length = 0
    for n, result in zip(numbers or range(1, len(results) + 1), results, strict=True):
        blocks.append(piece_text(n, result))
        length += len(blocks[-1]) + 2
        if length > limit and len(blocks) > 1:
            return "\n\n".join(blocks[:-1])
    return "\n\n".join(blocks)


def piece_text(n: int, result: RetrievalResult) -> str:
    """Return one piece of evidence under its number."""
    about = result["metadata"]
    fields = [
        f"{name}: {_cell(value)}" for name, value in (about.get("fields") or {}).items() if value
    ]
    aside = "; ".join([*fields, f"score {result['score']:.2f}"])
    return f"[{n}] {about.get('title') or ''} ({aside})\n{result['evidence']}".replace(
        "]  (", "] ("
    ).strip()


def _cell(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)[:_LONGEST_VALUE]
    more = f", … ({len(value)} in all)" if len(value) > _VALUES else ""
    return ", ".join(map(str, value[:_VALUES]))[:_LONGEST_VALUE] + more


def offered(tools: Tools, bases: Iterable[KnowledgeBase]) -> dict[str, Tool]:
    """Return the tools that a planning model may choose from: those that these bases can use."""
    abouts = [base.about() for base in bases]
    has = {
        "source": any(about["nouns"].get("source") for about in abouts),
        "fields": any(about["fields"] for about in abouts),
        "entities": any(about["counts"].get("entities") for about in abouts),
    }
    names = [
        name
        for name in tools
        if getattr(tools[name], "planned", True) and has.get(NEEDED.get(name, ""), True)
    ]
    return {name: tools[name] for name in names}


def condition_faults(tool_input: Data, bases: Bases) -> list[str]:
    """Return what is wrong with conditions and order: fields that no base has, and values that do not fit theirs."""
    base_fields = dict.fromkeys(
        field["name"] for base in bases for field in base.about()["fields"]
    )
    conditions = tool_input.get("conditions") or []
    sort = tool_input.get("sort")
    field_names = [each.get("field") for each in [*conditions, sort] if isinstance(each, dict)]
    field_names += [tool_input["count_by"]] if tool_input.get("count_by") else []
    faults = [
        f"The documents have no field {name!r}. Fields: {', '.join(base_fields) or 'none'}."
        for name in field_names
        if name not in [*base_fields, "table"]
    ]
    try:
        for base in [] if faults or not conditions else bases:
            base.select(
                [
                    Condition(field=c["field"], op=c.get("op", "eq"), value=c.get("value"))
                    for c in conditions
                ]
            )
    except UnfitCondition as error:
        faults.append(str(error))
    return faults


def base_problems(plan: Plan, context: Context, kb: str) -> Iterator[Json]:
    """Yield a problem for each base that is not there, and each condition that does not fit; ``kb`` is the run's."""
    for step in plan.steps:
        if step.references() or not hasattr(context.tools[step.tool].input_schema, "restricts"):
            continue  # what it takes from another step is seen when that has run
        try:
            bases = context.bases([step.tool_input.get("kb_prefix") or kb])
            faults = condition_faults(step.tool_input, bases)
        except UnknownKnowledge as unknown:
            faults = [str(unknown)]
        for fault in faults:
            yield problem(step.step_id, "tool_input", f"{step.step_id}: {fault}", "")


def card(bases: Iterable[KnowledgeBase]) -> str:
    """Return what each knowledge base holds: sizes, languages, types with an example, fields with values, relations."""
    lines_of_bases = []
    for base in bases:
        about = base.about()
        counts = about["counts"]
        sizes = ", ".join(
            f"{counts[name]:,} {name}"
            for name in ("documents", "passages", "entities")
            if name in counts
        )
        fields = [_field(field) for field in about["fields"]]
        kinds = [kind for kind in about["relations"] if kind["type"] != "mentions"]
        kinds = sorted(kinds, key=lambda k: (-k["count"], k["type"], k["source"], k["target"]))[
            :_KINDS
        ]
        relations = [
            f"{_short(k['source'])} —{_short(k['type'])}→ {_short(k['target'])} ({k['count']})"
            for k in kinds
        ]
        titles = [*map(_short, about["titles"][:12])]
        types = [
            f"{_short(kind)} ({count:,}, as {_short(title)})"
            for kind, count, title in about["types"]
        ]
        lines = [
            f"{base.name}: {sizes}; written in {' and '.join(about['languages']) or 'no language'}"
        ]
        lines += [f"  types: {'; '.join(types)}"] if types else []
        lines += [f"  fields: {'; '.join(fields)}"] if fields else []
        lines += [f"  relations: {'; '.join(relations)}"] if relations else []
        lines += [f"  some titles: {'; '.join(titles)}"] if titles else []
        lines_of_bases += lines
    return "\n".join(lines_of_bases)


def _short(name: Any) -> str:
    """Return a name as a card has it, in one line: a longer one tells a story, and the planner is to hear none."""
    return " ".join(str(name).split())[:80]


def _field(field: Data) -> str:
    values = ", ".join(map(_short, field["values"][:_VALUES]))
    values = values or (f"{field['low']} to {field['high']}" if field["low"] is not None else "")
    return f"{_short(field['name'])} {field['type']}" + (f" ({values})" if values else "")


def described(tools: Tools) -> str:
    """Return each tool in a line; the form has their inputs."""
    return "\n".join(f"- {name}: {tool.description}" for name, tool in tools.items())


def steps_text(
    plan: Plan | None, records: Records, totals: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return what ran so far: each step's tool and input, how it ended, what it found; ``totals`` by step."""
    last = last_records(records)
    lines = []
    for step in plan.steps if plan else ():
        if step.step_id in last:
            record = last[step.step_id]
            own = {
                name: value
                for name, value in record["raw_input"].items()
                if name not in ("top_k", "timeout_s")
            }
            tool_input = json.dumps(own, ensure_ascii=False)[:_LONGEST_VALUE]
            count = record["output_summary"].get("evidence_count", 0)
            result = totals.get(step.step_id, f"{count} found")
            why = f": {record['error'][:_LONGEST_VALUE]}" if record["error"] else ""
            lines.append(
                f"- {step.step_id}: {record['tool']} {tool_input}: {record['status']}, {result}{why}"
            )
    return "\n".join(lines) or NONE


def counts_by_step(state: Data, context: Context) -> dict[str, tuple[str, Json]]:
    """Return what each search by fields counted, by step: what it asked, and its output."""
    counted = {}
    for step_id, record in last_records(state.get("records", [])).items():
        if (
            record["tool"] == "discover"
            and record["status"] in ENDED_WELL
            and record["raw_output_ref"]
        ):
            output = context.runs.body(state["run_id"], str(record["raw_output_ref"])).get(
                "output", {}
            )
            conditions = " & ".join(
                format_condition(c) for c in record["raw_input"].get("conditions") or []
            )
            counted[step_id] = (
                conditions or str(record["raw_input"].get("query") or step_id),
                output,
            )
    return counted


def totals_by_step(state: Data, context: Context) -> dict[str, str]:
    """Return how many documents hold for each search by fields, and of each value where it counts them."""
    lines = {}
    for step_id, (_, output) in counts_by_step(state, context).items():
        values = ", ".join(
            f"{value} {count}" for value, count in list(output.get("counts", {}).items())[:_KINDS]
        )
        lines[step_id] = f"{output.get('total')} hold" + (f"; {values}" if values else "")
    return lines


READ = 60
"""The highest number of a passage that a model may name."""
SEEN = 0.005
"""The lowest score of a passage that is shown after the first ``FIRST`` of its step."""
FIRST = 3


def read_window(
    plan: Plan, results_by_step: ResultsByStep, met: Sequence[str], limit: int
) -> tuple[list[RetrievalResult], list[tuple[str, int]]]:
    """Return the passages that a model reads, and where each group of them begins: its title and its first number.

    What met a need before comes first, by its id; then the first results of each step, in the step's own order, without
    texts that a passage before them holds.
    """
    passages = list[RetrievalResult]()
    groups = []
    ids = set()

    def show(title: str, results: Evidence, limit: int) -> None:
        """Add a group, whose title says how many of them are shown."""
        new = list[RetrievalResult]()
        for result in results:
            text = result["evidence"]
            before = [*passages, *new]
            likely = len(new) < FIRST or result["score"] >= SEEN
            if (
                likely
                and len(new) < limit
                and len(before) < READ
                and result["result_id"] not in ids
            ):
                if not text or not any(text in shown["evidence"] for shown in before):
                    new.append(result)
                # one that is only listed may still be read where another step found its text
                if text:
                    ids.add(result["result_id"])
        if new:
            groups.append((f"{title}, {len(new)} of {len(results)} shown:", len(passages) + 1))
            passages.extend(new)

    by_id = {
        result["result_id"]: result for results in results_by_step.values() for result in results
    }
    show(
        "What met a need so far",
        [by_id[result_id] for result_id in met if result_id in by_id],
        READ,
    )
    for step_id, results in results_by_step.items():
        step = plan.by_id().get(step_id)
        listed = step is not None and is_listing(step.tool, step.tool_input)
        pieces = [without_text(result) for result in results] if listed else results
        # without their texts, four times as many fit
        show(
            f"{step_id} ({step.tool})" if step else step_id,
            pieces,
            limit * 4 if listed else limit,
        )
    return passages, groups


def is_listing(tool: str, tool_input: Data) -> bool:
    """Check whether a search asks for documents by their fields alone: their fields say what was asked."""
    return tool == "discover" and not tool_input.get("query")


def without_text(result: RetrievalResult) -> RetrievalResult:
    """Return a document with its fields alone, or unchanged where it has none."""
    return {**result, "evidence": ""} if result["metadata"].get("fields") else result


def window_text(
    passages: Evidence,
    groups: Sequence[tuple[str, int]],
    limit: int,
) -> str:
    """Return the passages with their numbers, each group under its title; where all do not fit, the longest are cut."""
    titles = {first: title for title, first in groups}
    texts = [piece_text(n, p) for n, p in enumerate(passages, 1)]
    share = limit
    room = limit
    for place, length in enumerate(sorted(map(len, texts))):
        # what shorter texts leave is shared by the longer ones
        share = room // (len(texts) - place)
        room -= min(length, share)
    lines = []
    for n, text in enumerate(texts, start=1):
        lines += [titles[n]] if n in titles else []
        lines.append(text if len(text) <= share else f"{text[:share]} …")
    return "\n\n".join(lines)
