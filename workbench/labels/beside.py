"""What comparisons, forks, checkpoints and grafts say as widgets."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {}
