"""A made-up harbour that reports are written about, and a model that writes them as it is told."""

import json
import re
from pathlib import Path
from typing import Any

from tests.servers import Reply
from tests.servers.roles import passages
from workbench.records.prompts import Prompts

TOPIC = "The harbour: bridge, lighthouse, ferry, fish"
TITLES = ["Bridge", "Lighthouse", "Ferry", "Fish"]
TOLD = {
    "bridge": "The Long Bridge of the harbour has 40 arches. The bridge was built in 1902 of red stone.",
    "light": "The lighthouse stands at the mouth of the harbour. The lamp of the lighthouse burns oil.",
    "ferry": "The ferry crosses the harbour four times a day. A ticket for the ferry costs two marks.",
    "fish": "Herring is landed at the harbour in autumn. The fish market opens at five.",
}
_LINES = {prompt.system.strip().splitlines()[0]: prompt.name.partition(".")[0] for prompt in Prompts().values()}


def harbour(folder: Path, told: dict[str, str] = TOLD) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in told.items():
        (folder / f"{name}.md").write_text(f"# {name.capitalize()}\n\n{text}\n", encoding="utf-8")
    return folder


def prompt_of(request: dict[str, Any]) -> str:
    return _LINES[str(request["messages"][0]["content"]).strip().splitlines()[0]]


def title_of(request: dict[str, Any]) -> str:
    text = "\n".join(str(m["content"]) for m in request["messages"])
    title = re.search(rf"^.*: ({'|'.join([*TITLES, 'Herring'])})$", text, re.M)
    return title[1] if title else ""


def writes(request: dict[str, Any]) -> Reply:
    """A section for each aspect that says what its passages say, and an abstract that is the first line of all."""
    name, sent = prompt_of(request), "\n".join(str(m["content"]) for m in request["messages"])
    shown = passages(sent.partition("</evidence>")[0])
    if name == "outline":
        parts = [(t, [n for n, body in shown.items() if t.lower() in body.lower()]) for t in TITLES]
        told: Any = {
            "sections": [{"title": t, "summary": "", "query": t, "evidence": found} for t, found in parts if found]
        }
    elif name == "section":
        said = [
            (n, line) for n, body in shown.items() for line in re.findall(r"[A-Z][^.]+(?=\.)", body.split("\n")[-2])
        ]
        told = {"text": " ".join(f"{line} [{n}]." for n, line in said)}
    elif name == "abstract":
        text = str(request["messages"][-1]["content"])
        told = {"text": re.search(r"[A-Z][^.\n]+\[\d+\]\.", text)[0]}  # type: ignore[index]
    else:
        told = {}
    return Reply([json.dumps(told)])
