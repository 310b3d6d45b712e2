"""Real servers on loopback for tests: an OpenAI-compatible one by a script, and PostgreSQL."""

from tests.servers.postgres import postgres_server
from tests.servers.scripted import (
    DEADLINE_S,
    Reply,
    ScriptedServer,
    closed_port,
    free_port,
    scripted_replies,
    scripted_server,
    until,
)  # fmt: skip
from workbench.settings import ROLES, RULES


def only(*roles: str) -> dict[str, dict[str, str]]:
    """Settings that leave the chat model to these roles."""
    return {"models": {role: RULES for role in ROLES if role not in roles}}


__all__ = [
    "DEADLINE_S", "Reply", "ScriptedServer", "closed_port", "free_port", "only", "postgres_server",
    "scripted_replies", "scripted_server", "until",
]  # fmt: skip
