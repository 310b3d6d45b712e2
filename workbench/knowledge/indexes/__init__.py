"""The SQLite file of a base, and its indexes: keywords, vectors (Chroma), walks over the graph."""
