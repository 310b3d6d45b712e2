"""Why a reflection proposes what it proposes: sentences for people, with the numbers, in the question's language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.state import StopReason
from workbench.text import language_of


@dataclass(frozen=True)
class Reasons:
    """The sentences of a reflection, Chinese or English."""

    zh: bool

    @classmethod
    def for_question(cls, query: str) -> Reasons:
        """In the language of the question."""
        return cls(language_of(query) == "zh")

    def _say(self, zh: str, en: str) -> str:
        return zh if self.zh else en

    def _list(self, names: Iterable[str]) -> str:
        return self._say("、", ", ").join(names)

    def activating(self, steps: list[str]) -> str:
        """Conditional steps of the plan are woken."""
        names = self._list(steps)
        return self._say(f"启用备用步骤 {names}", f"the conditional step {names} is activated")

    def adding(self, tool: str) -> str:
        """One more tool is asked."""
        return self._say(f"补充 {tool}", f"{tool} is added")

    def rewriting(self, query: str) -> str:
        """The question is said again."""
        return self._say(f"改写为“{query}”再检索", f"the query is said again as {query!r}")

    def looking_for(self, names: list[str]) -> str:
        """A targeted search."""
        joined = self._list(names)
        return self._say(f"定向检索 {joined}", f"a targeted search looks for {joined}")

    def more_candidates(self, seen: Mapping[str, Any]) -> str:
        """A recommendation has too few to choose from."""
        return self._say("再找更多候选", "more candidates are looked for")

    def degrading(self, tool: str, simpler: str) -> str:
        """A simpler tool takes the place of one that failed."""
        return self._say(f"{tool} 失败，降级为 {simpler}", f"{tool} did not end well, so {simpler} takes its place")

    def conclusion(self, seen: Mapping[str, Any], stop: StopReason | None, actions: list[str]) -> str:
        """What was seen, with its numbers, and what follows."""
        facts = self._say("；", "; ").join(self._facts(seen))
        then = self._say("；", "; ").join(actions) if stop is None else self._ends(stop)
        return self._say(f"{facts}。{then}。", f"{facts}. {then[:1].upper()}{then[1:]}.")

    def _facts(self, seen: Mapping[str, Any]) -> Iterable[str]:
        enough, count, top = seen["thresholds"], seen["evidence_count"], seen["top_score"]
        least, score = enough["min_evidence"], enough["min_top_score"]
        yield self._say(f"证据 {count} 条（至少 {least:g}）", f"{count} pieces of evidence (at least {least:g})")
        yield self._say(f"最高分 {top:.2f}（至少 {score:.2f}）", f"top score {top:.2f} (at least {score:.2f})")
        for thing in seen["coverage"]:
            if thing["found"] < thing["needed"]:
                yield self._say(
                    f"《{thing['name']}》只有 {thing['found']} 条，需要 {thing['needed']} 条",
                    f"{thing['name']} has {thing['found']} of {thing['needed']}",
                )
        if seen["unknown"]:
            names = self._list(seen["unknown"])
            yield self._say(f"知识库里没有 {names}", f"the knowledge base never names {names}")
        if seen.get("missing_fields"):
            lost = [self._say(f"《{t}》的{field}", f"the {field} of {t}") for t, field in seen["missing_fields"]]
            yield self._say(f"没有找到{self._list(lost)}", f"nothing says {self._list(lost)}")
        elif seen.get("answered") is False:
            yield self._say("没有句子回答这个问题", "no sentence answers the question")
        if "candidates" in seen:
            least = enough["min_candidates"]
            yield self._say(
                f"候选 {seen['candidates']} 个（至少 {least:g}）",
                f"{seen['candidates']} candidates (at least {least:g})",
            )
        if "holding" in seen:
            yield self._say(f"符合条件的有 {seen['holding']} 个", f"{seen['holding']} documents hold the conditions")
        for kind, zh, en in (("timeouts", "超时", "timed out"), ("failures", "失败", "failed")):
            if seen[kind]:
                yield self._say(f"{self._list(seen[kind])} {zh}", f"{self._list(seen[kind])} {en}")

    def _ends(self, stop: StopReason) -> str:
        zh, en = {
            "quality_satisfied": ("证据足够", "this is enough"),
            "max_iterations_reached": ("轮次已用完", "the passes are used up"),
            "budget_exhausted": ("时间已用完", "the time is used up"),
            "no_further_action": ("没有别的可试", "nothing is left to try"),
            "error": ("所有步骤都失败了", "every step failed"),
            "stopped_by_reviewer": ("由审阅者停止", "stopped by the reviewer"),
        }[stop]
        return self._say(zh, en)
