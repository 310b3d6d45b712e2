"""Measuring: answers to a table of questions, rankings of documents, recall of earlier turns."""

from workbench.extensions import Part

PART = Part("evaluate", __name__, commands={"eval": "commands:evaluate"})
