"""An answer that a path of relations led to: its ends, each with the relations that lead there."""

from __future__ import annotations

from typing import Any

from workbench.generate.evidence import Evidence
from workbench.generate.voice import Voice

MOST_SHOWN = 30
SURE = 0.5
"""Below it another path is as likely, and the texts are asked instead."""


def followed(evidence: Evidence, voice: Voice) -> str:
    """The ends of the path, best first; "" when none was followed that is surely the one asked for."""
    found = [(n, r["metadata"]["path"]) for n, r in enumerate(evidence.results, 1) if r["metadata"].get("path")]
    found = [(n, path) for n, path in found if path["sure"] >= SURE]
    if not found:
        return ""
    first = found[0][1]
    same = [
        (n, path) for n, path in found if (path["topic"], path["relations"]) == (first["topic"], first["relations"])
    ]
    lines = [_heading(first, len(same[:MOST_SHOWN]), voice)]
    lines += [_line(n, path, voice) for n, path in same[:MOST_SHOWN]]
    return "\n".join(lines)


def _heading(path: dict[str, Any], shown: int, voice: Voice) -> str:
    way, count, topic = " → ".join(path["relations"]), max(path["of"], shown), voice.name(path["topic"])
    english = f"From {topic} along {way} the knowledge graph has {count} answer{'' if count == 1 else 's'}"
    chinese = f"从{topic}沿 {way}，知识图谱中有 {count} 个答案"
    cut = voice.pick(f"; here are {shown}", f"，这里列出 {shown} 个") if shown < count else ""
    return voice.spaced(voice.pick(english, chinese) + cut + voice.pick(":", "："))


def _line(n: int, path: dict[str, Any], voice: Voice) -> str:
    named = voice.name(path["answer"])
    return voice.spaced(f"- {named}{voice.pick(' (', '（')}{path['said']}{voice.pick(')', '）')}") + f" [{n}]"
