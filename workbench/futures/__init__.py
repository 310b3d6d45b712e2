"""What is made of a finished run: replayed, compared, sealed in a file."""
