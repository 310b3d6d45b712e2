"""Chat models, embeddings and rerankers by name, offline ones included; retries and errors of their servers."""
