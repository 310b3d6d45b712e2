"""A corpus and its indexes behind one ``KnowledgeBase``: files, names, passages, a graph of entities.

``library`` holds the bases of a workspace by name. In the order of a document: ``reading`` (files to documents),
``adding`` (one transaction), ``names`` (fields, entities, links), ``indexes`` (keywords, vectors, walks),
``communities``.
"""
