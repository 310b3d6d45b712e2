"""A run at work: started, driven to its next pause or its end, answered, resumed, forked.

``asking`` (a message and its options), ``work`` (who works on which run), ``driver`` (one run through the graph),
``playback`` (with which settings and tape), ``run`` (the handle that people hold), ``fork``, ``past``, ``lineage``.
"""
