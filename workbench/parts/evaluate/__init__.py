"""Measuring: answers to a table of questions, rankings of documents, recall of earlier turns."""
