"""Light pictures: HTML and SVG, pure functions of records, escaped throughout, styled by one stylesheet."""
