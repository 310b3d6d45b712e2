"""Measuring: answers to a table of questions, and rankings of a set with gold documents."""
