"""What the models of a run saw and said: one fold a call, in the order in which they were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.views.labels import Labels, milliseconds
from workbench.views.page import Picture, draw


def calls(found: Sequence[Mapping[str, Any]], labels: Labels) -> Picture:
    """The calls of ``Run.calls``, each with a button to edit it; nothing where no model was asked."""
    if not found:
        return Picture()
    read, written = (sum(call[name] or 0 for call in found) for name in ("input", "output"))
    money = sum(call["money"] or 0 for call in found)
    told = labels("calls_count", n=len(found))
    told += f" · {labels('tokens_of', read=f'{read:,}', written=f'{written:,}')}" if read else ""
    told += f" · {money:.4f}" if money else ""
    rows = [(call, _where(call, labels), _aside(call, labels)) for call in found]
    return Picture(draw("calls.all", labels=labels, calls=rows, told=told))


def edited(call: Mapping[str, Any], labels: Labels) -> Picture:
    """The head of the form in which a call is edited: which one, the way back, and the call as it was, folded."""
    return Picture(draw("calls.edited", labels=labels, call=call))


def _where(call: Mapping[str, Any], labels: Labels) -> str:
    return " · ".join(filter(None, [labels(f"role_{call['role']}"), call["at"], call["prompt"]]))


def _aside(call: Mapping[str, Any], labels: Labels) -> str:
    counted = [labels("tokens_of", read=f"{call['input']:,}", written=f"{call['output']:,}")] if call["input"] else []
    aside = [call["model"], *counted, milliseconds(call["seconds"] * 1000)]
    aside += [labels("from_tape")] if call["replayed"] else []
    aside += [labels("reply_edited")] if call["edited"] else []
    return " · ".join(aside)
