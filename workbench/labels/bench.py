"""What the bench itself says: its head, its states, its buttons."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    "bench_empty": ("Ask a question", "提一个问题"),
    "views": ("Views", "视图"),
    "view_work": ("Work", "工作台"),
    "view_runs": ("Runs and forks", "运行与分支"),
    "view_compare": ("Compare", "对比"),
    "view_knowledge": ("Knowledge graph", "知识图谱"),
    "forked_from": ("forked from {run}", "由 {run} 分出"),
    "pass_of": ("pass {n} of {most}", "第 {n} / {most} 轮"),
    "nothing_run": ("nothing has run yet", "尚未执行"),
    "carry_on": ("Go on", "继续"),
    "carry_on_told": ("Its process stopped; what is finished is kept.", "它的进程停了；已完成的部分都保留着。"),
    "fork_anew": ("Fork: decide again", "分支：重新决定"),
    "fork_anew_told": (
        "Make a new run from this one, which asks you again at its last decision",
        "由这次运行分出新的运行，在最后一个决定处再问你一次",
    ),
    "compare_with": ("Compare with {run}", "与 {run} 对比"),
    "cancel_run": ("Cancel", "取消"),
    "new_question": ("New question", "新问题"),
    "reopened": ("This run waited here; the bench goes on with it.", "这次运行在此等待，工作台接着它继续。"),
    "answered_elsewhere": ("Answered elsewhere; showing that.", "已在别处决定，现显示结果。"),
    # asking
    "question": ("Question", "问题"),
    "ask_placeholder": ("Ask the knowledge base. Example: {example}", "向知识库提问，例如：{example}"),
    "follow_up": ("Ask on in this conversation", "在这个对话中接着问"),
    "knowledge_base": ("Knowledge base", "知识库"),
    "kb_any": ("let the router choose", "由路由决定"),
    "kb_documents": ("{name} · {n} documents", "{name} · {n} 篇"),
    "pause_at": ("Pause for me at", "在这些地方等我决定"),
    "ask_now": ("Ask", "提问"),
    "example_compare": ("Compare {a} and {b}", "对比《{a}》和《{b}》"),
    "example_about": ("What is {a} about?", "《{a}》讲的是什么？"),
    "conversation": ("Conversation · {n} before", "对话 · 之前 {n} 轮"),
    # the answer
    "writing": ("Working on it …", "正在处理……"),
    "answer_sources": ("{n} sources", "{n} 处来源"),
    "show_evidence": ("Evidence {n}: {title}", "证据 {n}：{title}"),
    # forks from a plan that was edited after the run
    "fork_edits": ("Fork with 1 edit", "按 1 处修改分支"),
    "fork_edits_n": ("Fork with {n} edits", "按 {n} 处修改分支"),
    "fork_edits_told": (
        "This run stays as it is; the new one takes from its tape all that the edit does not touch.",
        "这次运行保持不变；新的运行从它的记录带取用修改没有触及的一切。",
    ),
    "discard": ("Discard edits", "放弃修改"),
    "mend_first": ("{n} problems to mend first", "先改正 {n} 处问题"),
    # evidence
    "evidence_title": ("Evidence", "证据"),
    "evidence_found": ("{n} found", "找到 {n} 条"),
    "evidence_kept": ("{kept} of {n} in the prompt, {cited} cited", "{n} 条中 {kept} 条在提示里，引用 {cited} 条"),
    "stage_found": ("Found", "找到"),
    "stage_prompt": ("In the prompt", "在提示里"),
    "stage_cited": ("Cited", "被引用"),
    "dropped": ("dropped: {why}", "未采用：{why}"),
    "why_duplicate": ("duplicate of {n}", "与 {n} 重复"),
    "why_results": ("beyond the most results", "超出结果条数上限"),
    "why_characters": ("the prompt was full", "提示已满"),
    "why_without": ("left out of this fork", "此分支不采用"),
    "cited": ("cited", "已引用"),
    "show_all": ("All {n}", "全部 {n} 条"),
    "show_fewer": ("Fewer", "收起"),
    # nodes
    "rail_retrieval": ("retrieval", "检索"),
    "node_route": ("route", "路由"),
    "node_recall": ("recall", "回忆"),
    "node_planner": ("planner", "规划"),
    "node_executor": ("executor", "执行"),
    "node_reflector": ("reflector", "反思"),
    "node_merger": ("merger", "合并"),
    "node_generate": ("generate", "生成"),
    "node_persist": ("persist", "保存"),
}
