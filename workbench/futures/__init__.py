"""What is made of a finished run: replayed, compared, grafted, played otherwise, sealed, turned into a test, told."""
