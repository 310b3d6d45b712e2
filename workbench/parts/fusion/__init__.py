"""The fusion graph over two sources, and JSON Canvases: asked, worked on, drawn and written."""
