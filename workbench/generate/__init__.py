"""Evidence to a cited answer: by the offline writer, or streamed from a chat model.

In reading order: ``node.py`` (the graph's node) and ``prompt.py`` (what a chat model is told); then the writer:
``question.py`` (what is wanted), ``evidence.py`` and ``sources.py`` (what is known), ``compose.py`` (which kind of
answer), ``direct.py``, ``verdict.py``, ``works.py``, ``recommend.py`` and ``sides.py`` (the kinds), ``facts.py`` and
``quotes.py`` (typed facts, chosen sentences), ``silence.py`` (the corpus does not say) and ``voice.py`` (how either
language puts it). ``citations.py`` reads the ``[n]`` of any answer. The words for all this are in the TOML files.
"""
