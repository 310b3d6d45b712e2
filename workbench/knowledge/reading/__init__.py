"""Files to documents: formats, blocks of text, tables, triples; what is not taken, and why."""
