"""What every process would load first, loaded once: the processes of a storm are forked from one that has it."""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", ANONYMIZED_TELEMETRY="False")

import importlib

for _name in (
    *("chromadb", "chromadb.api.rust", "httpx", "langchain_openai", "langgraph.checkpoint.sqlite"),
    *("networkx", "numpy", "openai", "workbench.graphs.conversation", "workbench.session", "tests.storm"),
    *("workbench.knowledge.adding", "workbench.knowledge.knowledge_base", "workbench.graphs.generate"),
):
    importlib.import_module(_name)

from workbench.models.embeddings import sentence_encoder  # noqa: E402
from workbench.models.rerank import words  # noqa: E402

sentence_encoder().array(["warm"])
words("预热")
