"""What the bench itself says: its head, its states, its buttons."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {}
