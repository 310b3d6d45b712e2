"""The conversation graph and the retrieval graph inside it: a file a node, and who reviews.

``conversation`` (recall, persist), ``route``, ``retrieval`` (dispatch), ``plan`` (``chained``: plans of several hops;
``llm_plan``: a model's), ``review``, ``execute``, ``reflect`` (``signals``, ``rewrite``), ``merge`` (``enriching``),
``generate``. ``reviewers`` and ``autopilot`` answer in place of a person; ``agents`` retrieve without a conversation.
"""
