"""What is kept of a run: its rows, tape, checkpoints and log, and which process owns it.

``store`` (rows), ``tape`` (every effect, by what determines it), ``checkpoints``, ``lease`` (who works on it),
``proposals`` (what a review point proposes); and what is computed from rows: ``figures``, ``timeline``, ``document``.
"""
