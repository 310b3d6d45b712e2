"""What a capsule says of itself: for people a page and a short text, for machines RO-Crate 1.1 metadata.

https://www.researchobject.org/ro-crate/specification/1.1/
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from workbench.futures.sealing import MANIFEST, lines, pretty
from workbench.labels import labels_for
from workbench.show import run_html
from workbench.text import visible

METADATA, PAGE, READ_ME = "ro-crate-metadata.json", "run.html", "README.md"
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://schema.org/sha256"}]
_FORMATS = {
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "html": "text/html",
    "md": "text/markdown",
}
_ENDS = {"done": "CompletedActionStatus", "failed": "FailedActionStatus", "cancelled": "FailedActionStatus"}
ABOUT = {
    "run.json": "What was asked, how it ended, and what came of it",
    "plans.jsonl": "Every version of the plan, with who made it and why",
    "records.jsonl": "What each attempt at each step did",
    "bodies.jsonl": "What each attempt found",
    "decisions.jsonl": "What was answered at review points, with what was proposed",
    "events.jsonl": "The log of the graph's nodes",
    "tape.jsonl": "Every other effect of the run: plans, models, reads of knowledge and of the conversation",
    "evidence.jsonl": "The evidence, best first, as the answer's [n] count it",
    "settings.json": "The settings in force, without secrets and addresses",
    "knowledge.json": "The fingerprint of each knowledge base that was asked",
    "licences.json": "The texts in this capsule, with their sources and licences",
    PAGE: "The run as a page to read",
    READ_ME: "What this is",
}


def described(contents: Mapping[str, Any], document: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that are made of a run's contents, the metadata over all of them last."""
    begin, texts = begun(contents), licences(contents)
    merged = (contents["run"]["result"] or {}).get("merged") or {}
    made = {
        "evidence.jsonl": lines(merged.get("retrieval_results", [])),
        "settings.json": pretty(begin.get("settings", {})),
        "knowledge.json": pretty(fingerprints(contents)),
        "licences.json": pretty(texts),
        PAGE: _page(document),
        READ_ME: _read_me(document, begin.get("versions", {}), texts),
    }
    return {**made, METADATA: pretty(metadata(contents, texts, {**files, **made}))}


def begun(contents: Mapping[str, Any]) -> dict[str, Any]:
    """With what the run began: settings, clock, ids, tools, versions; empty for a run without a tape."""
    return {effect["name"]: effect["value"] for effect in contents["tape"] if effect["kind"] == "begin"}


def fingerprints(contents: Mapping[str, Any]) -> dict[str, str]:
    """Knowledge base -> the fingerprint of its documents, as the run saw them."""
    reads = [effect for effect in contents["tape"] if effect["kind"] == "knowledge"]
    told = {e["name"].removesuffix(".fingerprint"): e["value"] for e in reads if e["name"].endswith(".fingerprint")}
    return dict(sorted(told.items()))


def licences(contents: Mapping[str, Any]) -> list[dict[str, str]]:
    """Every document of which a text is in the capsule: ``{"kb_prefix", "doc_id", "title", "url", "licence"}``."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    effects = [(effect["name"].partition(".")[0], effect["value"]) for effect in contents["tape"]]
    for base, value in [*effects, ("", contents["bodies"]), ("", contents["run"]["result"])]:
        for text in _texts(value):
            kb, doc_id = str(text.get("kb_prefix") or base), str(text["doc_id"])
            row = {name: str(text.get(name) or "") for name in ("title", "url", "licence")}
            if doc_id and not any(found.get((kb, doc_id), {}).get(name) for name in row):
                found[kb, doc_id] = {"kb_prefix": kb, "doc_id": doc_id, **row}
    return [found[place] for place in sorted(found)]


def _texts(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("doc_id"), str) and "licence" in value:
            yield value
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def metadata(contents: Mapping[str, Any], texts: list[dict[str, str]], files: Mapping[str, bytes]) -> dict[str, Any]:
    """The crate: its files, the run as the action that made them, with what, and under which licences texts stand."""
    row, begin = contents["run"], begun(contents)
    ids = {name: f"#licence-{n}" for n, name in enumerate(sorted({t["licence"] for t in texts if t["licence"]}), 1)}
    ids = {name: name if name.startswith(("http://", "https://")) and " " not in name else i for name, i in ids.items()}
    told = [f"{sum(t['licence'] == name for t in texts)} documents: {name}" for name in ids]
    graph: list[dict[str, Any]] = [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": f"Workbench run {row['run_id']}",
            "description": row["message"],
            "datePublished": row["ended_at"] or row["created_at"],
            "license": [{"@id": i} for i in ids.values()] or "No text in this capsule says its licence.",
            "hasPart": [{"@id": name} for name in (*sorted(files), MANIFEST)],
            "mentions": {"@id": "#run"},
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": row["message"],
            "startTime": row["created_at"],
            "endTime": row["ended_at"] or row["created_at"],
            "actionStatus": {"@id": f"http://schema.org/{_ENDS[row['status']]}"},
            "instrument": {"@id": "#workbench"},
            "object": [{"@id": name} for name in ("settings.json", "knowledge.json")],
            "result": [{"@id": name} for name in sorted(files) if name not in ("settings.json", "knowledge.json")],
            **({"error": row["error"]} if row["error"] else {}),
        },
        *_software(begin.get("versions", {})),
        *(
            {"@id": i, "@type": "CreativeWork", "name": name, "description": t}
            for (name, i), t in zip(ids.items(), told, strict=True)
        ),
        *(_file(name, files[name]) for name in sorted(files)),
        {
            "@id": MANIFEST,
            "@type": "File",
            "name": "Every file with its size and SHA-256",
            "encodingFormat": _FORMATS["json"],
        },
    ]
    return {"@context": _CONTEXT, "@graph": graph}


def _software(versions: Mapping[str, str]) -> list[dict[str, Any]]:
    others = [name for name in versions if name != "workbench"]
    return [
        {
            "@id": "#workbench",
            "@type": "SoftwareApplication",
            "name": "workbench",
            "version": versions.get("workbench", "unknown"),
            "softwareRequirements": [{"@id": f"#{name}"} for name in others],
        },
        *(
            {"@id": f"#{name}", "@type": "SoftwareApplication", "name": name, "version": versions[name]}
            for name in others
        ),
    ]


def _file(name: str, content: bytes) -> dict[str, Any]:
    return {
        "@id": name,
        "@type": "File",
        "name": ABOUT[name],
        "encodingFormat": _FORMATS[name.rpartition(".")[2]],
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _page(document: Mapping[str, Any]) -> bytes:
    title, language = escape(visible(document["message"])), labels_for(document["message"]).html_lang
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n{run_html(dict(document))}\n</body>\n</html>\n"
    ).encode()


def _read_me(document: Mapping[str, Any], versions: Mapping[str, str], texts: list[dict[str, str]]) -> bytes:
    made = ", ".join(f"{name} {number}" for name, number in versions.items()) or "a workbench without tapes"
    rows = "\n".join(f"| `{name}` | {what} |" for name, what in ABOUT.items())
    return f"""# A run of workbench, sealed

Run `{document["run_id"]}`, made with {made}. `{PAGE}` shows it in a browser, `{METADATA}` describes it to machines.

    workbench import FILE.zip              # into any workspace; the corpus is not needed
    workbench replay {document["run_id"]}          # once more, from its tape: no network, no model
    workbench show {document["run_id"]}

| file | what it holds |
| --- | --- |
{rows}

It holds texts of {len(texts)} documents; `licences.json` says under which licence each of them stands.
""".encode()
