"""The bench in a notebook: thin widgets over runs. Data in, one trait out; every picture comes from ``views``."""
