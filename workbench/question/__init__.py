"""Reading a question: its names, its times and fields, what it wants. Pure functions over text and linked names."""
