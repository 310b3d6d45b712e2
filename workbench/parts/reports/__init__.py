"""A report: its kinds, outline, sections, references, and the forms it comes in. Pure: the graph is in ``graphs``."""
