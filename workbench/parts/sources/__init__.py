"""Sources and stores outside a workspace: TMDB, LanceDB, PostgreSQL."""

from workbench.extensions import Part

PART = Part(
    "sources",
    __name__,
    sources={"tmdb": "tmdb:Tmdb"},
    stores={"lancedb": "lance:Lance", "postgres": "postgres:PostgresConversations"},
)
