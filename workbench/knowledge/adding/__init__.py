"""Documents into an index, in one transaction; an index grown, or made again."""
