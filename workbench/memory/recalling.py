"""Earlier exchanges for a question: ranked over the turns of a conversation, or of all of a user's.

Turns are kept in memory by conversation, as many as a few conversations have, and follow the store with each call.
Vectors come with ``embed``; an exchange that has none yet is found by its words, and where the model fails everything is.
"""
