"""What is made of a run that is there: replayed, compared, grafted, sealed, and turned into a test."""
