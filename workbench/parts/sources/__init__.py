"""Sources and stores outside a workspace: TMDB, LanceDB, PostgreSQL."""

from workbench.extensions import Part

PART = Part(
    "sources",
    __name__,
    settings="settings:SourceSettings",
    tools={"enrichment": "enrichment:TOOL"},
    nodes={"enriched": "enrichment:enriched", "can_enrich": "enrichment:can_enrich"},
    sources={"tmdb": "tmdb:Tmdb"},
    stores={"lancedb": "lance:Lance", "postgres": "postgres:PostgresConversations"},
)
