"""Settings of this part."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class FusionSettings(BaseModel, use_attribute_docstrings=True):
    """How the fusion graph combines its sources, and when it searches again."""

    fusion_strategy: Literal["rrf", "weighted", "cascade", "zscore", "percentile"] = "rrf"
    """how the fusion graph combines the rankings of its sources"""
    quality_threshold: float = Field(0.7, ge=0, le=1)
    """quality below which the fusion graph searches again"""
    max_retries: int = Field(3, ge=0, le=10)
    """how often the fusion graph searches again"""
