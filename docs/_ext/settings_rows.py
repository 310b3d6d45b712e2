"""Every setting as a row, for the page of settings and for the test that none goes without a meaning."""

from __future__ import annotations

import re
from typing import get_args, get_origin

from workbench.settings import all_settings

# Fields whose description is not in the code yet.
NOTES = {
    "chat_api_key": "key of the chat server",
    "embedding_base_url": "base URL of the embedding server",
    "embedding_api_key": "key of the embedding server",
    "tmdb_base_url": "address of TMDB",
    "auto_route": "choose the knowledge base by the question when none is named",
    "max_tasks": "most steps in a plan",
    "step_timeout_s": "seconds for one attempt at a step",
    "step_top_k": "results that a step asks for",
    "step_max_retries": "attempts after the first",
    "execution_mode": "how ready steps are run",
    "max_concurrency": "steps that run at the same time",
    "max_iterations": "passes of execute and reflect",
    "time_budget_s": "seconds of work per run; waiting for a person does not count",
    "citation_style": "style of a report's references",
    "allow_unclarified_plan": "write a report with stated assumptions when its topic leaves something open",
    "stop_on_clarification": "ask when several things have the name in a report's topic",
    "default_domain": "subject to assume for a report; 通用 (general) is the whole knowledge base",
    "auto_generate_report": "write the report once its evidence is found; otherwise the plain answer",
    "strict_plan_signal": "run a report's plan only if every step can run",
    "reflection_allow_retry": "repeat a step that a `reflection` step finds incomplete",
    "reflection_max_retries": "how often it is repeated",
    "consistency_check": "check every statement of a report against what it cites",
    "mapreduce": "write a section with much evidence by map and reduce",
    "mapreduce_threshold": "pieces of evidence from which map and reduce is used",
    "reduce_strategy": "how the parts become one text",
    "max_tokens_per_reduce": "tokens that a model reads in one reduce step",
    "parallel_map": "read the parts at the same time",
    "section_max_evidence": "pieces of evidence in one call to write a section",
    "section_max_context_characters": "characters of the text so far that the next call sees",
    "merge_max_results": "pieces of evidence that reach the answer",
    "merge_max_characters": "characters of evidence that reach the answer",
    "postgres_dsn": "keep conversations in PostgreSQL instead of SQLite",
    "chunk_characters": "length of a passage",
}


def rows() -> list[dict[str, str]]:
    """Return variable, earlier name, default and meaning of every setting."""
    found = []
    for name, field in all_settings().model_fields.items():
        default = field.default
        if hasattr(default, "get_secret_value"):
            default = default.get_secret_value()
        text = str(default).lower() if isinstance(default, bool) else str(default)
        variable = f"WORKBENCH_{name.upper()}"
        known = {variable, name}
        aliases = [
            str(alias)
            for alias in getattr(field.validation_alias, "choices", ())
            if str(alias) not in known
        ]
        meaning = re.sub(
            r"'([^']+)'", r"`\1`", field.description or NOTES.get(name, "")
        )
        choices = (
            get_args(field.annotation)
            if "Literal" in str(get_origin(field.annotation))
            else ()
        )
        if choices and not all(
            f"`{choice}`" in meaning for choice in choices if choice
        ):
            meaning += ": " + ", ".join(f"`{choice}`" for choice in choices if choice)
        found.append(
            {
                "name": variable,
                "alias": ", ".join(aliases),
                "default": text,
                "meaning": meaning,
            }
        )
    return found
