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
    "forked_from": ("forked from {run}", "分叉自 {run}"),
    "pass_of": ("pass {n} of {most}", "第 {n} / {most} 轮"),
    "nothing_run": ("nothing has run yet", "尚未执行"),
    "carry_on": ("Resume", "继续"),
    "carry_on_told": (
        "Its process stopped; everything that finished is kept.",
        "它的进程已停止，已完成的部分都会保留。",
    ),
    "fork_anew": ("Fork and decide again", "分叉并重新决定"),
    "fork_anew_told": (
        "Start a new run from this one that asks you again at its last decision",
        "从这次运行分叉出一次新运行，在最后一个决定处重新询问你",
    ),
    "compare_with": ("Compare with {run}", "与 {run} 对比"),
    "cancel_run": ("Cancel", "取消"),
    "cancel_sure": ("Cancel this run for good?", "确定取消这次运行吗？"),
    "cancel_yes": ("Yes, cancel it", "确定取消"),
    "cancel_no": ("No, keep it", "不取消"),
    "new_question": ("Next question", "继续提问"),
    "new_question_told": ("Continues this conversation", "继续这个对话"),
    "new_conversation": ("New conversation", "新对话"),
    "new_conversation_told": ("Starts afresh, without what was said before", "重新开始，不带之前的内容"),
    "reopened": ("This run was still waiting; the bench has picked it up.", "这次运行还在等待，工作台已接着打开它。"),
    "went_on_elsewhere": (
        "It was continued elsewhere; this is how it stands now.",
        "它已在别处继续，这里显示的是当前状态。",
    ),
    # asking
    "question": ("Question", "问题"),
    "ask_placeholder": ("Ask the knowledge base. Example: {example}", "向知识库提问，例如：{example}"),
    "follow_up": ("Ask a follow-up in this conversation", "在这个对话中追问"),
    "knowledge_base": ("Knowledge base", "知识库"),
    "kb_any": ("let the router choose", "由路由自动选择"),
    "kb_choice": ("{name} · {n:document}", "{name} · {n} 篇文档"),
    "pause_at": ("Pause for me at", "在以下位置暂停，由我决定"),
    "ask_now": ("Ask", "提问"),
    "example_compare": ("Compare {a} and {b}", "对比《{a}》和《{b}》"),
    "example_about": ("What is {a} about?", "《{a}》讲的是什么？"),
    "conversation": ("Conversation · {n:earlier question}", "对话 · 此前 {n} 轮"),
    # the answer
    "writing": ("Working on it …", "正在处理……"),
    "answer_sources": ("{n:piece|pieces} cited", "引用 {n} 条证据"),
    "show_evidence": ("Evidence {n}: {title}", "证据 {n}：{title}"),
    # forks from a plan that was edited after the run
    "fork_edits": ("Fork with {n:edit}", "按 {n} 处修改分叉"),
    "fork_edits_told": (
        "This run stays as it is; the new one reuses everything that the edit does not touch.",
        "这次运行保持不变；修改没有触及的部分，新运行会直接沿用。",
    ),
    "discard": ("Discard edits", "放弃修改"),
    # evidence
    "evidence_title": ("Evidence", "证据"),
    "evidence_found": ("{n} found", "找到 {n} 条"),
    "evidence_kept": ("{kept} of {n} in the prompt, {cited} cited", "共 {n} 条，{kept} 条进入提示词，{cited} 条被引用"),
    "stage_found": ("Found", "找到"),
    "stage_prompt": ("In the prompt", "进入提示词"),
    "stage_cited": ("Cited", "被引用"),
    "dropped": ("dropped: {why}", "未采用：{why}"),
    "why_duplicate": ("duplicate of {n}", "与 {n} 重复"),
    "why_results": ("over the limit on results", "超出结果条数上限"),
    "why_characters": ("the prompt was full", "提示词已满"),
    "why_without": ("left out of this fork", "此分支已将其排除"),
    "cited": ("cited", "被引用"),
    "show_all": ("Show all {n}", "显示全部 {n} 条"),
    "show_fewer": ("Show fewer", "收起"),
    # nodes
    "rail_retrieval": ("retrieval", "检索"),
    "node_route": ("route", "路由"),
    "node_recall": ("recall", "回顾"),
    "node_planner": ("planner", "规划"),
    "node_executor": ("executor", "执行"),
    "node_reflector": ("reflector", "反思"),
    "node_merger": ("merger", "合并"),
    "node_generate": ("generate", "生成"),
    "node_persist": ("persist", "保存"),
}
