"""Reading a question and answering it without a model: the deterministic defaults, in English and Chinese.

``question.py`` makes one ``Question`` per run; ``names.py``, ``dates.py`` and ``numbers.py`` read what it names and
``words.toml`` has its closed classes of words. ``followup.py`` joins a message with the conversation that it leans on;
``asking_back.py`` names what a question leaves open. ``answer.py`` judges the evidence and answers from it: by typed
fields (``fields.py``) or by quotation (``quoting.py``), with marks (``citing.py``). ``support.py`` holds a statement
against what it cites.
"""
