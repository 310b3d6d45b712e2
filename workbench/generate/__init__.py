"""Evidence to a cited answer: by the offline writer, or streamed from a chat model.

In reading order: ``node.py`` (the graph's node), then either ``prompt.py`` (what a chat model is told) or the writer:
``question.py`` (what is wanted), ``sources.py`` (what is known), ``compose.py`` (which answer), ``facts.py``, ``quotes.py``,
``works.py`` and ``sides.py`` (what it says), ``voice.py`` (how either language says it), ``silence.py`` (when the corpus
says nothing). ``citations.py`` reads the ``[n]`` of any answer.
"""

from workbench.generate.compose import compose
from workbench.generate.node import generate

__all__ = ["compose", "generate"]
