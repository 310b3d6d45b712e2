"""The words and signs with which runs are shown, English and Chinese, for every form alike."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.text import language_of

SIGNS: Mapping[str, str] = {
    "done": "✓",
    "success": "✓",
    "partial": "◐",
    "running": "▸",
    "paused": "‖",
    "interrupted": "↻",
    "failed": "✗",
    "timeout": "◷",
    "cancelled": "⊖",
    "skipped": "⊘",
    "pending": "○",
    "proposed": "+",
}
"""A sign for each status, each distinct in shape; it always stands before the word."""

_WORDS: Mapping[str, tuple[str, str]] = {
    # status of a run, a step, a review
    "done": ("done", "完成"),
    "success": ("done", "完成"),
    "partial": ("partial", "部分完成"),
    "running": ("running", "运行中"),
    "paused": ("waiting for you", "等待你决定"),
    "interrupted": ("interrupted", "已中断"),
    "failed": ("failed", "失败"),
    "timeout": ("timed out", "超时"),
    "cancelled": ("cancelled", "已取消"),
    "skipped": ("skipped", "已跳过"),
    "pending": ("not begun", "尚未执行"),
    "proposed": ("proposed", "建议"),
    # headings
    "plan": ("Plan", "计划"),
    "step": ("step", "步骤"),
    "steps": ("{n} steps", "{n} 步"),
    "one_step": ("1 step", "1 步"),
    "version": ("version {n}", "第 {n} 版"),
    "tool": ("tool", "工具"),
    "after": ("after", "依赖"),
    "found": ("found", "找到"),
    "n_found": ("{n} found", "找到 {n}"),
    "best": ("best", "最高分"),
    "time": ("time", "用时"),
    "status": ("status", "状态"),
    "work_time": ("work time, 0 to {span}", "工作时间，0 到 {span}"),
    "work": ("{span} work", "工作 {span}"),
    "run": ("run", "运行"),
    "answer": ("Answer", "回答"),
    "no_answer": ("No answer yet.", "还没有回答。"),
    "sources": ("Sources", "来源"),
    "source": ("source", "来源"),
    "licence": ("licence", "许可"),
    "sentence": ("sentence", "句子"),
    "evidence": ("Evidence, {n} pieces, {used} of them in the prompt", "证据 {n} 条，其中 {used} 条在提示中"),
    "piece": ("piece", "片段"),
    "score": ("score", "分数"),
    "found_by": ("found by", "来自工具"),
    "reflections": ("Reflections", "反思"),
    "reflection": ("Reflection {n} of {m}", "第 {n} / {m} 次反思"),
    "signal": ("signal", "指标"),
    "value": ("value", "实际"),
    "needed": ("asked for", "要求"),
    "enough": ("✓ enough", "✓ 足够"),
    "short": ("! too little", "! 不足"),
    "goes_on": ("search on", "继续检索"),
    "stops": ("stop", "停止"),
    "rewritten": ("Rewritten query", "改写后的查询"),
    "next_steps": ("Next steps", "下一步"),
    "decisions": ("Decisions", "决定"),
    "point": ("point", "审阅点"),
    "action": ("decision", "决定"),
    "who": ("by", "决定者"),
    "note": ("note", "备注"),
    "changes": ("changes", "修改"),
    "timeline": ("Timeline", "时间线"),
    "graph": ("graph", "图"),
    "work_axis": ("work time, ms", "工作时间，毫秒"),
    "quick_nodes": ("{n} quick nodes", "{n} 个很快的节点"),
    "attempt": ("attempt {n}", "第 {n} 次尝试"),
    "waiting": ("waiting for a person", "等待人的决定"),
    "stopped": ("not running", "未运行"),
    # runs beside one another
    "part_question": ("the question", "问题"),
    "part_settings": ("the setting {name}", "设置 {name}"),
    "part_knowledge": ("the knowledge base {name}", "知识库 {name}"),
    "part_query": ("the question as it was searched for", "实际检索的问题"),
    "part_plan": ("the first plan", "第一版计划"),
    "part_decision": ("the decision {name}", "决定 {name}"),
    "part_step": ("the step {name}", "步骤 {name}"),
    "part_reflection": ("reflection {name}", "第 {name} 次反思"),
    "part_evidence": ("the merged evidence", "合并后的证据"),
    "part_answer": ("the answer", "回答"),
    "they_part": ("They part at {what}", "从{what}开始不同"),
    "no_difference": (
        "They do not part: the same plan, evidence, decisions and answer.",
        "没有不同：计划、证据、决定和回答都相同。",
    ),
    "not_only": (
        "This differs too, so a difference below need not come from the plan or a decision:",
        "此外还有不同，所以下面的差别不一定来自计划或决定：",
    ),
    "caveat_model": ("another model, {name}", "模型不同，{name}"),
    "caveat_settings": ("another setting, {name}", "设置不同，{name}"),
    "caveat_knowledge": ("another state of the knowledge base {name}", "知识库 {name} 的内容不同"),
    "caveat_question": ("another question", "问题不同"),
    "caveat_handlers": ("other answerers", "应答器不同"),
    "caveat_tools": ("other tools", "工具不同"),
    "caveat_versions": ("another version of {name}", "{name} 的版本不同"),
    "caveat_unfinished": (
        "{name} is not done; what it has not come to is not lost",
        "{name} 尚未完成；还没做到的不算失去",
    ),
    "caveat_no_tape": ("{name} has no tape: its settings and cost are not known", "{name} 没有记录带：设置与开销未知"),
    "made_from": ("made from {run}", "由 {run} 而来"),
    "change": ("change", "变化"),
    "field": ("field", "字段"),
    "same": ("same", "相同"),
    "gained": ("+ gained", "+ 新增"),
    "lost": ("− lost", "− 失去"),
    "moved": ("~ moved", "~ 移动"),
    "reworded": ("~ other text", "~ 文字不同"),
    "shared": ("shared", "共有"),
    "recited": ("~ cited otherwise", "~ 引用不同"),
    "added": ("+ added", "+ 增加"),
    "removed": ("− removed", "− 去掉"),
    "changed": ("~ changed", "~ 修改"),
    "of_proposal": ("proposal", "建议"),
    "of_action": ("answer", "回答"),
    "of_edits": ("edits", "修改"),
    "of_message": ("words", "说明"),
    "forecast": ("It will take about {p50} (P50), {p90} (P90)", "预计用时约 {p50}（P50）、{p90}（P90）"),
    "forecast_basis": ("From {n} past calls of these tools.", "依据这些工具过去的 {n} 次调用。"),
    "plan_changes": ("What the plan changes", "计划的变化"),
    "steps_beside": ("Steps", "各步骤"),
    "decisions_beside": ("Decisions side by side", "并列的决定"),
    "evidence_beside": (
        "Evidence: {gained} gained, {lost} lost, {moved} moved, {same} the same",
        "证据：新增 {gained}，失去 {lost}，移动 {moved}，相同 {same}",
    ),
    "claims_beside": ("Answer, claim by claim", "逐句比较的回答"),
    "claim": ("claim", "句子"),
    "cost": ("Time and cost", "时间与开销"),
    "work_seconds": ("work", "工作"),
    "steps_made": ("calls made", "实际调用"),
    "steps_taped": ("from the tape", "取自记录带"),
    "tokens_made": ("tokens, about", "词元，约"),
    "not_waiting": ("Waiting for a person is not work, and not counted.", "等待人的决定不算工作时间。"),
    "nothing_cited": ("nothing", "无"),
    # looking back
    "checkpoints": ("Checkpoints, {n}", "检查点，{n} 个"),
    "checkpoint": ("checkpoint", "检查点"),
    "next": ("next", "接下来"),
    "decided": ("decided", "已决定"),
    "tree": ("Runs, {n}, of them {forks} made from others", "运行 {n} 个，其中 {forks} 个由其他运行而来"),
    "and_more": ("and {n} more", "还有 {n} 个"),
    "made_by": ("question, or what was edited", "问题，或所作的修改"),
    "saved": ("saved", "节省"),
    "saved_steps": ("{n} calls, {span}", "{n} 次调用，{span}"),
    "fork": ("fork", "分叉"),
    "replay": ("replay", "重放"),
    "regression": ("replay, models asked again", "重放，模型重新作答"),
    "graft": ("graft", "嫁接"),
    "also_from": ("with {run}", "并取自 {run}"),
    "is_gone": ("{run} is gone", "{run} 已删除"),
    "edit_query": ("question", "问题"),
    "edit_plan": ("plan", "计划"),
    "edit_settings": ("settings", "设置"),
    "edit_thresholds": ("thresholds", "阈值"),
    "edit_without": ("left out", "去掉"),
    "edit_review": ("review points", "审阅点"),
    "edit_decision": ("decision", "决定"),
    "edit_asked_anew": ("asked anew from", "重新询问，自"),
    "let_go": ("what was before it was let go", "此前的状态已清理"),
    "log": ("Graph, node by node", "图的各节点"),
    "node": ("node", "节点"),
    "critical": ("critical path", "关键路径"),
    "error": ("Error", "错误"),
    "stop_reason": ("Stopped because", "停止原因"),
    "open_again": ("Open it again", "再次打开"),
    # what is made of runs
    "graft_of": ("Put together on {base}", "合并到 {base}"),
    "from_step": ("was", "原步骤"),
    "from_run": ("from run", "来自运行"),
    "how": ("how", "方式"),
    "from_tape": ("from the tape", "取自记录"),
    "made_anew": ("ran again", "重新执行"),
    "provenance": ("Where the evidence comes from", "证据来源"),
    "what_if": (
        "Each reflect point played both ways: what going on adds to stopping",
        "每个反思点两种走法：继续比停止多得到什么",
    ),
    "what_if_note": (
        "Costs are those of the recording; what was on no tape ran now, and stands under “ran now”.",
        "花费按记录计算；记录里没有的已现在执行，列在“现在执行”下。",
    ),
    "no_reflect_points": ("This run came to no reflect point.", "该运行没有经过反思点。"),
    "nothing_more": ("Pass {n}: the rules know nothing more to do.", "第 {n} 轮：规则没有更多可做的。"),
    "recorded": ("recorded", "当时"),
    "title": ("title", "标题"),
    "coverage": ("coverage", "覆盖"),
    "way_go_on": ("went on", "继续"),
    "way_stop": ("stopped", "停止"),
    "new_pieces": ("new pieces", "新证据"),
    "recall": ("recall", "召回"),
    "pay": ("cost", "花费"),
    "calls": ("calls", "调用"),
    "worth": ("value", "价值"),
    "per_second": ("{n} pieces/s", "{n} 条/秒"),
    "live": ("ran now", "现在执行"),
    "leave_one_out": ("Without each step, and without each cited piece", "去掉每一步、每条被引用的证据"),
    "left_out": ("left out", "去掉"),
    "gone": ("gone", "消失"),
    "otherwise": ("changed", "改变"),
    "cited_otherwise": ("other sources", "换了来源"),
    "newly_said": ("added", "新增"),
    "who_paid": ("Which step paid for which sentence", "哪一步支撑哪一句"),
    "rests_on": ("rests on", "依赖"),
    "spared": ("found it too", "也找到"),
    "single_removals": (
        "One thing is left out at a time: what several steps found, none of them alone takes away.",
        "每次只去掉一项：多个步骤都找到的内容，单独去掉其中一步不会消失。",
    ),
    "conflict": ("conflict", "冲突"),
    "conflicts": ("Conflicts", "冲突"),
    "no_conflicts": ("The branches contradict one another in nothing.", "各分支之间没有冲突。"),
    "where": ("where", "位置"),
    "says": ("says", "内容"),
    "what_became": ("what became of it", "处理结果"),
    "conflict_step": ("step", "步骤"),
    "conflict_question": ("question", "问题"),
    "conflict_knowledge_base": ("knowledge base", "知识库"),
    "conflict_settings": ("setting", "设置"),
    "conflict_history": ("history", "历史"),
    "conflict_corpus": ("corpus", "语料"),
    "conflict_tape": ("recorded value", "记录值"),
    "conflict_text": ("text of a piece", "证据文本"),
    "conflict_field": ("typed field", "字段"),
    "conflict_is_both": ("both stay", "两者都保留"),
    "conflict_is_replaced": ("replaced", "已替换"),
    "conflict_is_dropped": ("not taken", "未采用"),
    "conflict_is_base": ("as in the base", "以基础运行为准"),
    "conflict_is_preferred": ("as preferred", "按所选运行"),
    "conflict_is_anew": ("made anew", "重新生成"),
    "conflict_is_open": ("open", "待定"),
    # at the terminal
    "retrieval": ("searching", "检索中"),
    "generation": ("writing", "撰写中"),
    "go_on": ("Go on with", "继续"),
    "interrupted_run": ("Interrupted; run {run_id} waits. Go on with", "已中断；运行 {run_id} 可以继续"),
    "leave": ("leave it waiting", "先不决定"),
    "your_words": ("What should be added?", "要补充什么？"),
    "why": ("Why? Kept with the decision (optional)", "为什么？随决定一起保存（可不填）"),
    "choose_one": ("One of {keys}, please.", "请输入 {keys} 之一。"),
    "nothing_changed": ("Nothing was changed.", "没有改动。"),
    "edit_again": ("Open it again?", "再次打开吗？"),
    # review points and what can be answered
    "point_plan": ("plan", "计划"),
    "point_step": ("step", "步骤"),
    "point_reflect": ("reflect", "反思"),
    "ask_plan": ("Your decision: run this plan?", "请决定：执行这个计划吗？"),
    "ask_step": ("Your decision: run these steps now?", "请决定：现在执行这些步骤吗？"),
    "ask_reflect": ("Your decision: search once more?", "请决定：再检索一次吗？"),
    "ask_reflect_stop": ("Your decision: answer with this evidence?", "请决定：用这些证据回答吗？"),
    "clock": ("The work clock is stopped; the run waits.", "工作计时已停止，运行会一直等待。"),
    "approve": ("approve", "批准"),
    "edit": ("edit", "修改"),
    "reject": ("stop here", "到此为止"),
    "respond": ("respond", "补充说明"),
    # why a retrieval stopped
    "quality_satisfied": ("the evidence is good enough", "证据已足够"),
    "max_iterations_reached": ("the passes are used up", "达到最多轮数"),
    "budget_exhausted": ("the time is used up", "时间用完"),
    "no_further_action": ("nothing else to try", "没有其他可做的"),
    "stopped_by_reviewer": ("a reviewer stopped it", "审阅者叫停"),
    # signals
    "evidence_count": ("pieces of evidence", "证据数"),
    "top_score": ("best score", "最高分"),
    "candidates": ("distinct candidates", "不同候选"),
    "timeouts": ("timed out", "超时"),
    "failures": ("failed", "失败"),
    "missing": ("Still missing", "仍然缺少"),
    "unknown": ("Not in the knowledge base", "知识库中没有"),
    "holding": ("documents within the filters", "符合条件的文档"),
    "complete": ("all of them found", "已找全"),
    "time_left_s": ("seconds left", "剩余秒数"),
    "colon": (": ", "："),
    "comma": (", ", "、"),
}


class Labels:
    """The words of one language: ``labels("plan")``, ``labels("steps", n=3)``; an unknown word is shown as it is.

    >>> Labels("en")("steps", n=3), Labels("zh")("steps", n=3), Labels("zh")("my_signal")
    ('3 steps', '3 步', 'my signal')
    """

    def __init__(self, language: str):
        self.language = language
        self.html_lang = "zh-Hans" if language == "zh" else "en"

    def __call__(self, key: str, **values: object) -> str:
        """The word of that key."""
        if key not in _WORDS:
            return key.replace("_", " ")
        return _WORDS[key][self.language == "zh"].format(**values)

    def status(self, status: str) -> str:
        """Sign and word.

        >>> Labels("en").status("timeout"), Labels("zh").status("success")
        ('◷ timed out', '✓ 完成')
        """
        return f"{SIGNS.get(status, '·')} {self(status)}"


def labels_for(text: str) -> Labels:
    """The words in the language of a question."""
    return Labels(language_of(text))


def milliseconds(value: float) -> str:
    """A duration for people.

    >>> milliseconds(0.4), milliseconds(84.2), milliseconds(2170), milliseconds(754_000)
    ('<1 ms', '84 ms', '2.17 s', '12:34')
    """
    if value >= 60_000:
        return f"{int(value // 60_000)}:{int(value % 60_000 // 1000):02d}"
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return "<1 ms" if value < 1 else f"{value:.0f} ms"
