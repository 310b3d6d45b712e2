"""Sources and stores outside a workspace: TMDB, LanceDB, PostgreSQL."""

from workbench.extensions import Part

PART = Part(
    "sources",
    __name__,
    settings="settings:SourceSettings",
    tools={"enrichment": "enrichment:TOOL"},
    sources={"tmdb": "tmdb:Tmdb", "fields": "tmdb:FIELDS"},
    stores={"lancedb": "lance:Lance", "postgres": "postgres:PostgresConversations"},
)
