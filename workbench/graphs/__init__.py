"""The conversation graph and the retrieval graph inside it: one file per node, and who reviews.

``conversation`` (recall, persist), ``route``, ``retrieval`` (dispatch), ``planner`` (rules: ``plan``),
``review``, ``execute``, ``reflect`` (``needs``), ``merge``, ``generate`` (``writer_prompt``, ``answer_check``).
``reviewers`` answer for a person.
"""
