"""Capabilities that hang on the spine, one folder each."""
