"""Reading a question and writing an answer without a model: the deterministic defaults, in English and Chinese.

``reading.py`` makes a ``Reading`` of a question, once, over the schemas and names of the knowledge bases: ``marks.py``
finds what stands where and how far a negation reaches, ``names.py``, ``times.py`` and ``amounts.py`` find names, years,
dates and numbers, ``conditions.py`` says what documents must hold; ``ways.py`` and ``ways.toml`` have the words of
asking. ``followup.py`` asks a message together with what it leans on; ``asking_back.py`` has the readings of a question
that leaves open what decides its answer. ``statements.py`` reads
what a message states of the person and ``summarizing.py`` keeps a conversation in short (``statements.toml``).
``judging.py`` says which sentences of the
evidence answer, ``quoting.py`` has them without markup, and ``writing.py`` writes them down. Whatever belongs to one
domain comes from the base: its fields, their values, and what a vocabulary calls them.
"""
