"""The graph of entities and relations: its communities, and what a process sees of it."""
