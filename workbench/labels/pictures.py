"""What the pictures say: timeline, plan, graphs, evidence, knowledge."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    "recorded": ("recorded, not run again", "沿用记录，未重新执行"),
    "timeline_axis": (
        "work time, s · waiting is folded and not charged",
        "工作时间，秒 · 等待的时间折叠，不计入",
    ),
    "unfold_all": ("Unfold all", "全部展开"),
    "fold_all": ("Fold", "折叠"),
    # the knowledge graph around an answer
    "knowledge_told": ("{n} entities, {m} relations around the answer", "回答周围的 {n} 个实体、{m} 条关系"),
    "knowledge_choose": ("Choose an entity to see what relates it to others.", "选择一个实体，查看它与其他实体的关系。"),
    "expand_entity": ("Expand", "展开邻居"),
    "fold_entity": ("Fold", "收起邻居"),
    "way_from": ("Way from here …", "从这里出发……"),
    "way_to": ("Way from {name} to here", "从 {name} 到这里"),
    "no_way": ("No relations lead from one to the other.", "两者之间没有关系相连。"),
    "neighbours_hidden": ("{n} more neighbours are not shown.", "另有 {n} 个邻居未显示。"),
    "of_the_answer": ("of the answer", "回答所用"),
    "relation": ("relation", "关系"),
    "entity": ("entity", "实体"),
}
