"""A corpus and its three indexes behind one ``KnowledgeBase``.

In the order in which a document walks through it: ``corpus`` (files to documents), ``adding`` (one transaction),
``vectors``, ``names`` and ``entities`` (what it says), ``surfaces`` (every writing of every name), ``graph``
(communities), ``keywords`` and ``index`` (the SQLite file). Then a question: ``library`` (all bases),
``knowledge_base``, its ``view`` in memory, ``linking`` (who is meant). ``vocabulary`` has the genres and countries of
both languages.
"""
