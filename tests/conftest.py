"""What holds for every test: strict checkpoints, no telemetry, one thread a model, and nothing of the person's own settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before anything is imported: LangGraph, Chroma and the numeric libraries read these once.
os.environ.update(
    LANGGRAPH_STRICT_MSGPACK="true",  # a checkpoint that holds more than plain data is an error
    ANONYMIZED_TELEMETRY="False",
    LANGSMITH_TRACING="false",
    HF_HUB_OFFLINE="1",
    JUPYTER_PREFER_ENV_PATH="1",
    JUPYTER_PLATFORM_DIRS="1",
    OMP_NUM_THREADS="1",  # two spinning threads on two busy cores are many times slower than one
    OPENBLAS_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    OMP_WAIT_POLICY="PASSIVE",
)
POSTGRES_DSN = os.environ.pop("WORKBENCH_TEST_POSTGRES_DSN", None)
for variable in [*os.environ]:
    if variable.startswith(("WORKBENCH_", "MA_", "POSTGRES_", "OPENAI_")) or variable == "KB_AUTO_ROUTE":
        del os.environ[variable]
if POSTGRES_DSN:
    os.environ["WORKBENCH_TEST_POSTGRES_DSN"] = POSTGRES_DSN

from workbench.settings import Settings  # noqa: E402 - only now is the environment what tests are to see

Settings.model_config["env_file"] = None  # a person's own .env stays out of the tests


@pytest.fixture(scope="session")
def project() -> Path:
    """The folder that holds pyproject.toml."""
    return Path(__file__).resolve().parent.parent
