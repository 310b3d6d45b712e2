"""Reading a question and answering it without a model: the deterministic defaults, in English and Chinese.

A question becomes one ``Question`` per run: ``spans.py`` finds where it has names (``names.py``), values, words of
fields, dates and numbers (``dates_and_numbers.py``); ``question.py`` reads from these what is asked, as conditions,
order and fields. ``words.py`` has the closed classes of words. ``followup.py`` joins a message with the conversation
that it leans on. ``answer.py`` judges the evidence, and asks back or answers from it: by typed fields (``fields.py``)
or by quotation (``quoting.py``), with marks (``citing.py``, where a statement is held against what it cites).
"""
