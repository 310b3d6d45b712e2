"""Every picture and text of a run, as pure functions of rows: HTML, SVG (``drawing``), plotly (``figures``), terminal.

Everything that comes from documents, models and users is escaped here.
"""
