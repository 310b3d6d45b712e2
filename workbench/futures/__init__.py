"""What is made of a finished run: replayed, compared, grafted, played otherwise, sealed in a capsule, turned into a test."""
