"""What the pictures say: timeline, plan, graphs, evidence, knowledge."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {}
