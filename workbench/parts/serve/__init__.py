"""A workspace for others: over HTTP, as tools for agents (MCP), for a LangGraph server; its spans and metrics."""
