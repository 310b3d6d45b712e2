"""What the plan editor says: fields, changes, scopes, forecasts."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    # fields of any form
    "form_none": ("none", "无"),
    "form_yes": ("yes", "是"),
    "form_no": ("no", "否"),
    "form_no_json": ("This is no JSON: {why}.", "这不是有效的 JSON：{why}。"),
    "form_no_integer": (
        "{value} is no whole number. Give one, or leave it empty.",
        "{value} 不是整数。请填整数，或留空。",
    ),
    "form_no_number": ("{value} is no number. Give one, or leave it empty.", "{value} 不是数字。请填数字，或留空。"),
}
