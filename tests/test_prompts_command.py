"""`workbench prompts`: what the roles ask their models, listed and shown."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from workbench.cli import main
from workbench.records.prompts import Prompts


def test_prompts_are_listed_and_shown(tmp_path: Path) -> None:
    (tmp_path / "w" / "prompts").mkdir(parents=True)
    place = ["--workspace", str(tmp_path / "w")]
    shown = CliRunner().invoke(main, ["prompts", "show", "grader", *place])
    (tmp_path / "w" / "prompts" / "grader.en.toml").write_text(shown.stdout + "# mine\n", encoding="utf-8")
    found = json.loads(CliRunner().invoke(main, ["prompts", "list", *place, "--json"]).stdout)["prompts"]
    own = [row for row in found if row["source"] != "shipped"]
    assert len(found) == len(Prompts()) and [row["name"] for row in own] == ["grader.en"]
    assert "Known: router" in CliRunner().invoke(main, ["prompts", "show", "poet", *place]).output
