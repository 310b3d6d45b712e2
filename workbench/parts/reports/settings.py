"""Settings of this part."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from workbench.settings import alias


class ReportSettings(BaseModel):
    """How reports are clarified, written and checked."""

    report_type: str = Field(
        "long", validation_alias=alias("report_type", "MA_DEFAULT_REPORT_TYPE"), description="'short', 'long', or own"
    )
    citation_style: Literal["default", "apa", "ieee", "gb7714", "bibtex"] = "default"
    allow_unclarified_plan: bool = Field(
        True, validation_alias=alias("allow_unclarified_plan", "MA_ALLOW_UNCLARIFIED_PLAN")
    )
    stop_on_clarification: bool = Field(
        True, validation_alias=alias("stop_on_clarification", "MA_STOP_ON_CLARIFICATION")
    )
    default_domain: str = Field("通用", validation_alias=alias("default_domain", "MA_DEFAULT_DOMAIN"))
    consistency_check: bool = Field(True, validation_alias=alias("consistency_check", "MA_ENABLE_CONSISTENCY_CHECK"))
    mapreduce: bool = Field(True, validation_alias=alias("mapreduce", "MA_ENABLE_MAPREDUCE"))
    mapreduce_threshold: int = Field(20, ge=1, validation_alias=alias("mapreduce_threshold", "MA_MAPREDUCE_THRESHOLD"))
    reduce_strategy: Literal["collapse", "refine", "tree"] = "tree"
    max_tokens_per_reduce: int = Field(
        4_000, ge=200, validation_alias=alias("max_tokens_per_reduce", "MA_MAX_TOKENS_PER_REDUCE")
    )
    parallel_map: bool = Field(True, validation_alias=alias("parallel_map", "MA_ENABLE_PARALLEL_MAP"))
    section_max_evidence: int = Field(
        8, ge=1, validation_alias=alias("section_max_evidence", "MA_SECTION_MAX_EVIDENCE")
    )
    section_max_context_characters: int = Field(
        800, ge=0, validation_alias=alias("section_max_context_characters", "MA_SECTION_MAX_CONTEXT_CHARS")
    )
