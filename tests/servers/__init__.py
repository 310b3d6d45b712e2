"""Real servers on loopback for tests: an OpenAI-compatible one by a script, PostgreSQL, a small language model."""

from tests.servers.llama import llama_server, small_model
from tests.servers.postgres import postgres_server
from tests.servers.scripted import (
    DEADLINE_S,
    Reply,
    ScriptedServer,
    closed_port,
    free_port,
    scripted_server,
    until,
)  # fmt: skip
from workbench.settings import ROLES, RULES


def only(*roles: str) -> dict[str, dict[str, str]]:
    """Settings that leave the chat model to these roles."""
    return {"models": {role: RULES for role in ROLES if role not in roles}}


__all__ = [
    "DEADLINE_S", "Reply", "ScriptedServer", "closed_port", "free_port", "llama_server", "only", "postgres_server",
    "scripted_server", "small_model", "until",
]  # fmt: skip
