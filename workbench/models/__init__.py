"""Chat models, embeddings and rerankers by name, offline ones included; waiting, retries and errors of their servers."""
