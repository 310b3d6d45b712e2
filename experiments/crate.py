"""An experiment as a Workflow Run RO-Crate: ``python -m experiments.crate NAME --workspace DIR --out crate.zip``.

The zip holds the specification (the workflow), its questions, the table of cells, the report, and
``ro-crate-metadata.json`` after the profiles Process, Workflow and Workflow Run RO-Crate; ``make apart`` holds it to
roc-validator.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from workbench import Workbench
from workbench.parts.experiments.experiment import Experiment
from workbench.state import Json

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
VERSIONS = {name: name.rpartition("/")[2] for name in PROFILES}
INPUTS = {"questions.jsonl": ("Questions with gold", "application/jsonl")}
OUTPUTS = {
    "cells.csv": ("A row for each cell", "text/csv"),
    "report.html": ("The report", "text/html"),
}
WORKFLOW = "experiment.yaml"


def _one(ids: list[Json]) -> Json | list[Json]:
    return ids[0] if len(ids) == 1 else ids  # RO-Crate has no lists of one


def metadata(experiment: Experiment, license_url: str) -> Json:
    """Return the graph of the crate."""
    name = experiment.name
    state = experiment.spec
    ended = max(
        (row["ended_at"] for row in experiment._store.cells() if row["ended_at"]), default=""
    )
    began = experiment._store.experiment()["created_at"]
    files = {**INPUTS, **OUTPUTS}
    parameters = [
        {
            "@id": f"#{file}", "@type": "FormalParameter", "name": file, "additionalType": "File",
            "conformsTo": {"@id": "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"},
            "workExample": {"@id": file},
        }
        for file in files
    ]  # fmt: skip
    data = [
        {"@id": file, "@type": "File", "name": text, "description": text, "encodingFormat": kind}
        | {"exampleOfWork": {"@id": f"#{file}"}}
        for file, (text, kind) in files.items()
    ]
    root: Json = {
        "@id": "./", "@type": "Dataset", "name": name, "datePublished": ended or began, "license": {"@id": license_url},
        "description": state.hypothesis or f"{len(experiment.variants)} configurations, compared by {state.measure}",
        "conformsTo": [{"@id": profile} for profile in PROFILES], "mainEntity": {"@id": WORKFLOW},
        "hasPart": [{"@id": file} for file in (WORKFLOW, *files)], "mentions": {"@id": "#run"},
    }  # fmt: skip
    workflow = {
        "@id": WORKFLOW, "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"], "name": name,
        "programmingLanguage": {"@id": "#workbench"}, "input": _one([{"@id": f"#{file}"} for file in INPUTS]),
        "output": [{"@id": f"#{file}"} for file in OUTPUTS], "encodingFormat": "application/yaml", "version": "1",
        "description": "An experiment of Workbench", "license": {"@id": license_url},
    }  # fmt: skip
    action = {
        "@id": "#run", "@type": "CreateAction", "name": f"Run of {name}", "instrument": {"@id": WORKFLOW},
        "object": _one([{"@id": file} for file in INPUTS]), "result": [{"@id": file} for file in OUTPUTS],
        "startTime": began, "endTime": ended or began, "agent": {"@id": "#agent"},
        "description": json.dumps(experiment.proof(experiment.variants[0], experiment.questions[0], 0)),
        "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
    }  # fmt: skip
    context = [
        *(
            {"@id": url, "@type": "CreativeWork", "name": text, "version": VERSIONS[url]}
            for url, text in PROFILES.items()
        ),
        {
            "@id": license_url,
            "@type": "CreativeWork",
            "name": license_url,
            "description": "The licence of the results",
        },
        {
            "@id": "#workbench",
            "@type": "ComputerLanguage",
            "name": "Workbench experiment",
            "url": "https://yaml.org",
        },
        {"@id": "#agent", "@type": "Organization", "name": "whoever ran the experiment"},
    ]
    descriptor = {
        "@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": {"@id": "./"},
        "conformsTo": [{"@id": "https://w3id.org/ro/crate/1.1"}, {"@id": list(PROFILES)[2]}],
    }  # fmt: skip
    graph = [descriptor, root, workflow, action, *data, *parameters, *context]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}


def write_crate(
    experiment: Experiment, path: Path, license_url: str = "https://spdx.org/licenses/CC-BY-4.0"
) -> Path:
    """Write the crate of an experiment as a zip file, or into a folder that is there."""
    spec = experiment.spec.model_dump(mode="json", exclude_defaults=True) | {
        "questions": "questions.jsonl"
    }
    texts = {
        "ro-crate-metadata.json": json.dumps(metadata(experiment, license_url), indent=1),
        WORKFLOW: yaml.safe_dump(spec, sort_keys=False, allow_unicode=True),
        "questions.jsonl": "".join(
            json.dumps(row, ensure_ascii=False) + "\n" for row in experiment.questions
        ),
        "cells.csv": experiment.to_frame().to_csv(index=False),
    }
    with TemporaryDirectory() as folder:
        texts["report.html"] = experiment.report(Path(folder) / "report.html").read_text(
            encoding="utf-8"
        )
    if path.is_dir():
        for name, text in texts.items():
            (path / name).write_text(text, encoding="utf-8")
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return path


def main() -> None:
    """Write a crate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("--workspace", default=".workbench")
    parser.add_argument("--out", type=Path, default=Path("build/crate.zip"))
    options = parser.parse_args()
    with Workbench.open(options.workspace) as wb:
        print(write_crate(wb.experiments.get(options.name), options.out))


if __name__ == "__main__":
    main()
