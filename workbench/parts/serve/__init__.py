"""A workspace for others: over HTTP, as tools for agents (MCP), and for a LangGraph server."""
