"""Sources outside the corpus that are asked about what it lacks: one provider a file, behind ``context.Enricher``.

What they say is untrusted, and transient: evidence and a piece of graph for one run, never written into a knowledge
base. Whatever goes wrong is a note.
"""
