"""What the models of a run saw and said: one fold a call, in the order in which they were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.views.labels import Labels, milliseconds
from workbench.views.page import Markup, Picture, button, code, cut, el

_LONGEST = 30_000


def calls(found: Sequence[Mapping[str, Any]], labels: Labels) -> Picture:
    """The calls of ``Run.calls``, each with a button to edit it; nothing where no model was asked."""
    if not found:
        return Picture()
    read, written = (sum(call[name] or 0 for call in found) for name in ("input", "output"))
    money = sum(call["money"] or 0 for call in found)
    told = labels("calls_count", n=len(found))
    told += f" · {labels('tokens_of', read=f'{read:,}', written=f'{written:,}')}" if read else ""
    told += f" · {money:.4f}" if money else ""
    summary = el("summary", labels("calls_title"), " ", el("span.wb-dim", told))
    return Picture(el("details.wb-calls", summary, [_call(call, labels) for call in found], data_fold="calls"))


def edited(call: Mapping[str, Any], labels: Labels) -> Picture:
    """The head of the form in which a call is edited: which one, the way back, and the call as it was, folded."""
    title = el("h3.wb-title", labels("call_edit_title", n=call["n"], role=labels(f"role_{call['role']}")))
    back = button(labels("respond_back"), "close", cls="wb-quiet")
    bar = el("div.wb-bar", title, el("span.wb-push"), back)
    was = el("details", el("summary", labels("call_as_it_was")), _seen(call, labels), data_fold="was")
    return Picture(el("div.wb-call-edited", bar, was))


def _call(call: Mapping[str, Any], labels: Labels) -> Markup:
    where = " · ".join(filter(None, [labels(f"role_{call['role']}"), call["at"], call["prompt"]]))
    counted = [labels("tokens_of", read=f"{call['input']:,}", written=f"{call['output']:,}")] if call["input"] else []
    aside = [call["model"], *counted, milliseconds(call["seconds"] * 1000)]
    aside += [labels("from_tape")] if call["replayed"] else []
    aside += [labels("reply_edited")] if call["edited"] else []
    head = el("summary", f"{call['n']}. ", where, " ", el("span.wb-dim.wb-small", " · ".join(aside)))
    edit = button(labels("call_edit"), "edit", key=str(call["key"]))
    key = f"call {call['n']}"
    foot = el("div.wb-bar", edit, el("span.wb-push"), el("span.wb-dim.wb-small", code(call["key"])))
    return el("details.wb-call", head, _seen(call, labels), foot, data_fold=key)


def _seen(call: Mapping[str, Any], labels: Labels) -> list[Markup]:
    """What it saw, and what it said."""
    seen = [
        el("div", el("div.wb-dim.wb-small", labels(f"said_{kind}")), el("pre.wb-kept", cut(text, _LONGEST)))
        for kind, text in call["messages"]
    ]
    if call["thought"]:
        thought = el("pre.wb-kept", cut(call["thought"], _LONGEST))
        seen.append(el("details", el("summary.wb-dim.wb-small", labels("call_thought")), thought))
    said = el(
        "div",
        el("div.wb-strong.wb-small", labels("call_failed" if call["failed"] else "call_said")),
        el("pre.wb-kept", cut(call["reply"], _LONGEST)),
    )
    return [*seen, said]
