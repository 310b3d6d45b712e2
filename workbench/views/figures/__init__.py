"""Plotly figures, each a ``picture.Picture``: ``to_frame()`` returns its rows."""
