"""Evidence to a cited answer: ``node.py`` is the graph's node, ``prompt.py`` what a chat model is told.

Without a chat model the answer is written by ``language/writing.py``.
"""
