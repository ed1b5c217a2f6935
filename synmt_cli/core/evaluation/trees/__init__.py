"""How well trees match gold trees, and comparisons of parsers."""
