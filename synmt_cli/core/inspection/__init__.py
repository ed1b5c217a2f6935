"""The kind, the figures and the problems of files."""
