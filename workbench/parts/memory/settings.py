"""Settings of this part."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class MemorySettings(BaseModel, use_attribute_docstrings=True):
    """What is remembered, and how much of it is recalled."""

    memory_core: bool = True
    """remember and apply what users say about themselves"""
    memory_summary: bool = True
    """summarize conversations"""
    memory_episodes: bool = True
    """recall earlier exchanges"""
    memory_scope: Literal["conversation", "user"] = "conversation"
    """whose exchanges are recalled"""
    memory_top_k: int = Field(3, ge=1)
    """how many exchanges are recalled"""
    memory_least: float = Field(0.3, ge=0, le=1)
    """the lowest similarity of a recalled exchange"""
    memory_days: int = Field(0, ge=0)
    """recall only exchanges of the last days; 0: all"""
    memory_token_budget: int = Field(2_000, ge=0)
    """tokens of a prompt that the conversation and memory may use"""
    summary_from: int = Field(10, ge=2)
    """messages after which a conversation is summarized"""
    summary_every: int = Field(5, ge=1)
    """messages that leave the history window before the summary is updated"""
