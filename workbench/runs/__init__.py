"""A run at work: started, driven to its next pause or its end, answered, resumed, forked.

``asking`` (a message and its options), ``workers`` (who works on which run), ``driver`` (one run through the graph),
``playback`` (its settings, and the ports over its tape), ``recording`` (what is kept of it), ``run`` (the handle that
people hold), ``pictures``, ``fork``, ``past``.
"""
