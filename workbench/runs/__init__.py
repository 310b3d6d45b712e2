"""A run at work: started, driven to its next pause or its end, answered, resumed, forked.

``asking`` (a message and its options), ``batch`` (many messages), ``work`` (which run is worked on here), ``driver``
(one run through the graph), ``taped`` (its settings, and the ports over its tape), ``stored`` (what is stored of it),
``run`` (the handle, its pictures), ``listing`` (all runs of a workspace), ``fork`` (what may be edited), ``forecast``
(what it will take), ``family`` (what was changed since the origin).
"""
