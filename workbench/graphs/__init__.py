"""The conversation graph and the retrieval graph inside it: a file a node, and who reviews.

``conversation`` (recall, persist), ``route``, ``retrieval`` (dispatch), ``plan`` (several hops: ``multi_hop_plan``; a
model's: ``model_plan``), ``review``, ``execute``, ``reflect`` (``sufficiency``, ``rewrite``), ``merge``, ``enrich``,
``generate``. ``reviewers`` and ``autopilot`` answer for a person; ``agents`` retrieve without a conversation.
"""
