"""What the plan editor says: fields, changes, scopes, forecasts."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {}
