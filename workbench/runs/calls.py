"""The models of a run: which it is given and what they are asked with, what each saw, said and took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, TypedDict

from workbench.errors import RunError, shown
from workbench.records.prompts import Prompt, make_prompt
from workbench.records.tape import Effect, places, reply_text
from workbench.state import Data, Json
from workbench.views.labels import labels_for
from workbench.views.markup import cut
from workbench.views.render import FrameList

NODES = {
    "router": "route",
    "follow_up": "recall",
    "planner": "planner",
    "reflector": "reflector",
    "rewriter": "reflector",
    "writer": "generate",
    "checker": "generate",
}
"""Role -> the node in which it is asked."""


class Call(TypedDict):
    """One call of a model.

    Attributes:
        place: ``writer/2`` is the second call of the writer: ``run.fork(at=...)``.
        key: its address on the tape.
        role: who was asked.
        node: in which node.
        at: where, as ``pass 2``; ``repair`` is a second try.
        model: its name.
        prompt: the prompt's name and version.
        messages: ``[kind, text]`` each, as sent.
        reply: as received; why there is none, where the call failed.
        thought: what the model thought before, where the server sends it; never parsed, never the answer.
        failed: whether it did.
        input: tokens read, None where the server counts none; ``cached`` of them it had already; ``output`` written.
        seconds: how long it took.
        money: by the prices, None without one.
        sampling: temperature and the like, as far as the model says.
        replayed: whether it comes from another run's tape.
        edited: whether a fork changed the reply.
        outcome: ``refused``, ``repaired`` or ``overruled``; empty where the reply was followed.
        why: the reasons for that, as the model or the reflection was given them.
    """

    place: str
    key: str
    role: str
    node: str
    at: str
    model: str
    prompt: str
    messages: list[list[str]]
    reply: str
    thought: str
    failed: bool
    input: int | None
    cached: int | None
    output: int | None
    seconds: float
    money: float | None
    sampling: Json
    replayed: bool
    edited: bool
    outcome: str
    why: str


_COLUMNS = "place role node at model prompt input cached output seconds money replayed edited outcome said"


class Calls(FrameList[Call]):
    """The calls of a run, in their order; a table in a notebook."""

    columns = _COLUMNS.split()

    def rows(self) -> list[Json]:
        """Return a row per call, with the beginning of the reply in the place of its messages."""
        return [{**call, "said": cut(" ".join(call["reply"].split()), 200)} for call in self]

    def _repr_html_(self) -> str:
        frame = self.to_frame()[["place", "at", "model", "input", "output", "seconds", "said"]]
        return str(frame.to_html(index=False)) if self else labels_for("")("calls_none")

    def total(self) -> Json:
        """Return how many calls there are, and the sums of their tokens and money; None where nothing is counted."""
        names = ("input", "cached", "output")
        counts = {name: sum(Json(call)[name] or 0 for call in self) for name in names}
        money = [call["money"] for call in self if call["money"] is not None]
        counts |= {"calls": len(self), "tokens": counts["input"] + counts["output"]}
        return {**counts, "money": sum(money) if money else None}

    def by_role(self, role: str) -> Calls:
        """Those of one role."""
        return Calls(call for call in self if call["role"] == role)


def model_calls(effects: Iterable[Effect], state: Data) -> Calls:
    """Return the calls among the effects of a tape; of one that a node made twice, the last.

    Args:
        effects: of the tape.
        state: of the run, which says what of a reply was not followed.
    """
    by_place = places(effect for effect in effects if effect.kind == "model")
    calls = Calls(make_call(place, effect) for place, effect in by_place.items())
    for role in {call["role"] for call in calls}:
        for call, after in pairwise([*calls.by_role(role), None]):
            call["outcome"], call["why"] = _outcome(call, after, by_place[call["place"]], state)
    return calls


def _outcome(call: Call, after: Call | None, effect: Effect, state: Data) -> tuple[str, str]:
    """Return what became of a reply, and why; ``after`` is the next call of its role."""
    reflections = state.get("reflections", [])
    # a reply that a person edited was read again, and what was wrong with it before is not said of it
    wrong = None if call["edited"] else _reply(effect).get("wrong")
    if after and after["at"].endswith("repair"):  # asked again, with what was wrong
        return "refused", after["messages"][-1][1].partition("\n")[2]
    if wrong:
        return "refused", "\n".join(wrong)
    if call["role"] == "reflector":
        signals = {f"pass {r['current_iteration']}": r["signals"] for r in reflections}
        if overruled := signals.get(call["at"].removesuffix(" repair"), {}).get("overruled"):
            return "overruled", "\n".join(overruled)
    return "repaired" if wrong == [] and call["at"].endswith("repair") else "", ""


def own_prompts(prompts: Any, among: Mapping[str, Prompt]) -> dict[str, Json]:
    """Return custom prompts as they are stored with a run.

    Raises:
        RunError: it is no mapping.
        SettingsError: one is no prompt.
    """
    if not isinstance(prompts or {}, Mapping):
        raise RunError(
            f"prompts is {shown(prompts)}. Give a prompt for each role, as wb.prompts takes them."
        )
    new = [make_prompt(name, prompt_text, among) for name, prompt_text in (prompts or {}).items()]
    return {prompt.name: prompt.dump() for prompt in new}


def _reply(effect: Effect) -> Data:
    return effect.value if isinstance(effect.value, Mapping) else {}


def make_call(place: str, effect: Effect) -> Call:
    """Return the call of a model that an effect is."""
    reply = _reply(effect)
    request = effect.parts.get("input") or {}
    usage = reply.get("usage") or {}
    role = effect.name
    return Call(
        place=place,
        key=effect.key,
        role=role,
        node=NODES.get(role, ""),
        at=str(reply.get("at") or ""),
        model=str(request.get("model") or ""),
        prompt=str(reply.get("prompt") or ""),
        messages=[list(message) for message in request.get("messages", [])],
        reply=reply_text(effect),
        thought=str(reply.get("thought") or ""),
        failed=bool(reply.get("error")),
        input=usage.get("input"),
        cached=usage.get("cached"),
        output=usage.get("output"),
        seconds=effect.seconds,
        money=reply.get("money"),
        sampling=dict(reply.get("sampling") or {}),
        replayed=effect.replayed,
        edited=effect.edited,
        outcome="",
        why="",
    )
