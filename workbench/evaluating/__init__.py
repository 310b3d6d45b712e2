"""Measuring: answers to a table of questions, rankings of a set with gold documents, answers over triples."""
