"""From files to recordings: what is in a file, which column is what, and what is refused."""
