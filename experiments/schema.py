"""Write the JSON Schema of experiments: ``python -m experiments.schema > experiments/experiment.schema.json``."""

from __future__ import annotations

import json

from workbench.parts.experiments.spec import Spec


def main() -> None:
    """Print it."""
    schema = Spec.model_json_schema()
    schema["properties"]["include"] = {
        "type": "string",
        "description": "Take the keys of another file, under these.",
    }
    print(json.dumps(schema, indent=1))


if __name__ == "__main__":
    main()
