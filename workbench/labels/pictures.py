"""What the pictures say: timeline, plan, graphs, evidence, knowledge."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    "recorded": ("recorded, not run again", "沿用记录，未重新执行"),
    "timeline_axis": (
        "work time, s · waiting is folded and not charged",
        "工作时间，秒 · 等待的时间折叠，不计入",
    ),
    "unfold_all": ("Unfold all", "全部展开"),
    "fold_all": ("Fold", "折叠"),
}
