"""What the pictures say: timeline, plan, graphs, evidence, knowledge."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    "timeline_axis": ("work time, s · waiting is folded and not counted", "工作时间，秒 · 等待时间已折叠，不计入"),
    "unfold_all": ("Unfold all", "全部展开"),
    "fold_all": ("Fold", "折叠"),
    # the knowledge graph around an answer
    "knowledge_told": ("{n:entity|entities}, {m:relation} around the answer", "回答周围的 {n} 个实体、{m} 条关系"),
    "knowledge_choose": ("Select an entity to see how it relates to others.", "选择一个实体，查看它与其他实体的关系。"),
    "expand_entity": ("Expand", "展开邻居"),
    "fold_entity": ("Fold", "收起邻居"),
    "way_from": ("Path from here …", "以此为起点……"),
    "way_to": ("Path from {name} to here", "从 {name} 到这里的路径"),
    "no_way": ("No path of relations connects the two.", "两者之间没有关系路径。"),
    "neighbours_hidden": ("{n:more neighbour is|more neighbours are} not shown.", "另有 {n} 个邻居未显示。"),
    "of_the_answer": ("of the answer", "回答所用"),
    "relation": ("relation", "关系"),
    "entity": ("entity", "实体"),
    # the plan, the graphs and the timeline in plotly
    "added_in": ("added in version {n}", "第 {n} 版加入"),
    "changed_in": ("changed in version {n}", "第 {n} 版修改"),
    "taken": ("taken", "走过"),
    "not_taken": ("not taken", "未走过"),
    "either_way": ("dotted: one of several ways", "虚线：可能的去向之一"),
    "start": ("start", "开始"),
    "end": ("end", "结束"),
    "axis_time": ("work time, {unit} · waiting is folded and not counted", "工作时间，{unit} · 等待时间已折叠，不计入"),
    "unit_ms": ("ms", "毫秒"),
    "unit_s": ("s", "秒"),
    "forked_here": ("forked here", "在此分叉"),
    "all_steps": ("steps", "步骤"),
    "zoom_for_names": ("names appear when zoomed in", "放大后显示名称"),
    # every finding, and what became of it
    "findings": ("Every piece of evidence found, and what became of it", "找到的每条证据及其去向"),
    "axis_score": ("score: a probability, on a log-odds scale", "分数：概率，对数几率刻度"),
    "fate_cited": ("cited", "被引用"),
    "fate_used": ("in the prompt", "进入提示词"),
    "fate_found": ("found, not merged yet", "已找到，尚未合并"),
    "told_found": ("{n} found", "找到 {n} 条"),
    "told_used": ("{n} in the prompt", "{n} 条进入提示词"),
    "told_cited": ("{n} cited", "{n} 条被引用"),
    "told_dropped": ("{n} dropped", "{n} 条未采用"),
    "told_cut": ("{n} more over a step's own limit", "另有 {n} 条超出步骤自身的上限"),
    "not_drawn": ("{n:dropped piece} not drawn; to_frame() has all", "有 {n} 条未采用的没有画出，to_frame() 中都有"),
    "other_documents": ("{n:more document}", "另外 {n} 篇"),
    "step_rank": ("{step}: rank {n}", "{step}：第 {n} 名"),
    # how far scores can be believed
    "reliability": ("How reliable the scores are", "分数有多可靠"),
    "reliability_told": (
        "on the diagonal a score is right as often as it says; below it, it is overconfident; larger marks hold more",
        "落在对角线上，分数与实际相符；在线下则偏高；标记越大，结果越多",
    ),
    "axis_said": ("stated probability", "给出的概率"),
    "axis_right": ("share that was right", "实际正确的比例"),
    "reliability_bin": ("stated {said}, right {right}, {n:finding}", "给出 {said}，正确 {right}，{n} 条"),
    # rankings of a set
    "rankings": ("{set}: {n:question}, in percent", "{set}：{n} 个问题，百分比"),
    "rankings_told": (
        "R@k: share of the gold documents among the first k; all@k: questions with all of them. 95 % intervals.",
        "R@k：前 k 个文档中找到的答案文档比例；all@k：全部找到的问题比例。95 % 区间。",
    ),
    # the knowledge graph in plotly
    "knowledge_around": ("What the answer rests on", "回答所依据的实体"),
    "on_the_way": ("on the way", "途中"),
    "related": ("related", "相关"),
    "the_way": ("path of {n:relation}", "经过 {n} 条关系的路径"),
    "rel_written_by": ("written by", "作者"),
    "rel_mentions": ("mentions", "提到"),
    "rel_from_country": ("country", "国家"),
    "type_Document": ("document", "文档"),
    "type_Person": ("person", "人物"),
    "type_Name": ("name", "名称"),
    "type_Organisation": ("organisation", "机构"),
    "type_Place": ("place", "地点"),
    "type_Year": ("year", "年份"),
    "type_Genre": ("genre", "类型"),
    "type_Country": ("country", "国家"),
}
