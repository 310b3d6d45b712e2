"""Sources outside a corpus, and other stores of its vectors: TMDB, LanceDB."""
