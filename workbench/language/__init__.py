"""Reading a question and writing an answer without a model: the deterministic defaults, in English and Chinese.

``reading.py`` makes a ``Reading`` of a question, once, over the schemas and names of the knowledge bases: ``marks.py``
finds what stands where and how far a negation reaches, ``names.py``, ``times.py`` and ``amounts.py`` find names, years,
dates and numbers, ``conditions.py`` says what documents must hold; ``ways.py`` and ``ways.toml`` have the words of
asking. ``followup.py`` says a message again so that it stands alone. ``statements.py`` reads
what a message states of the person and ``summarizing.py`` keeps a conversation in short (``statements.toml``).
``judging.py`` says which sentences of the
evidence answer, ``quoting.py`` has them without markup, ``citing.py`` sets their marks, and ``writing.py`` writes them
down. Whatever belongs to one domain comes from the base: its fields, their values, and what a vocabulary calls them.
"""
