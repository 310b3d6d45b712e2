"""What a step of a plan may call: one file per tool, one registry.

``tool`` is the port, ``registry`` the list, ``adapt`` takes LangChain tools and functions; ``naive`` is the smallest.
"""
