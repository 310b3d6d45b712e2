"""Reading a question and answering it without a model: the deterministic defaults, in English and Chinese.

``question.py`` makes one ``Question`` per run; ``names.py`` and ``dates_and_numbers.py`` read what it names, and
``words.py`` its closed classes of words. ``followup.py`` joins a message with the conversation that it leans on.
``answer.py`` judges the evidence, and asks back or answers from it: by typed fields (``fields.py``) or by quotation
(``quoting.py``), with marks (``citing.py``, where a statement is held against what it cites).
"""
