"""Every picture and text of a run, as pure functions of rows: HTML and SVG, plotly (``figures``), terminal; the labels.

Everything that comes from documents, models and users is escaped here.
"""
