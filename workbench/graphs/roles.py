"""Ask the model of a role: fill in the prompt, record the call, check the reply, and ask for one repair.

Every call is one effect of kind ``model`` under the role's name: the messages as sent, the reply as received, and the
counted tokens. A failed call is one too, so that a replay fails in the same way. A reply is only a proposal:
``ask_model`` returns no form when it cannot be used, and the caller continues as without a model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from workbench.errors import ModelError
from workbench.models.chat import (
    Limits,
    filled_in,
    reply_text,
    sampling,
    thinking_text,
    token_usage,
)
from workbench.models.wire import tell
from workbench.ports import Context
from workbench.records.prompts import Prompt
from workbench.records.spending import price, spent
from workbench.state import Json
from workbench.text import clean, detect_language
from workbench.views.labels import Labels

Form = TypeVar("Form", bound=BaseModel)


class ModelForm(BaseModel, extra="forbid"):
    """A form for a model to fill in; unknown fields are refused."""


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
        where = f"{at} repair".strip() if attempt == 2 else at
        reply = await _reply(context, role, messages, form, prompt_template, where, read)
        if reply.get("error"):
            refused.append(reply["error"])
            break
        filled, wrong = read(reply["text"])
        if filled is not None and not wrong:
            return Reply(filled, refused, attempt == 2)
        refused += wrong
        again = "\n".join([Labels(language)("form_again"), *wrong])
        messages = [*messages, ["ai", reply["text"]], ["human", again]]
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
    limits = Limits.from_settings(context.settings)

    async def call() -> Json:
        try:
            message = await filled_in(model, [*map(tuple, messages)], form, limits)
        except ModelError as error:  # kept on the tape; the run goes on without the model
            return {"error": str(error), "at": at}
        text = clean(reply_text(message))
        thought = clean(thinking_text(message))
        return {
            "text": text,
            "wrong": read(text)[1],  # what becomes of a reply is shown from the tape
            "at": at,
            **accounted(context, role, prompt_template, token_usage(message), thought),
        }

    args = {
        "model": context.settings.role_model(role),
        "messages": messages,
        "schema": form.model_json_schema(),
    }
    effect = await context.tape.effect("model", role, args, call)
    return dict(effect.value)


def accounted(
    context: Context, role: str, prompt: Prompt, usage: Mapping[str, int] | None, thought: str
) -> Json:
    """Return the tape's record of a reply: tokens, price, version of the prompt, sampling, thoughts where there are."""
    model = context.models[role]
    money = price(context.prices, context.settings.role_model(role), usage)
    return {
        **({"thought": thought} if thought else {}),
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
            wrong = wrong or messages or [f"the reply is no JSON: {error}."]
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
