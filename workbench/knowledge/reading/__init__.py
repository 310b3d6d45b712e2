"""Files to documents: formats, blocks of text, triples; what is not taken, and why."""
