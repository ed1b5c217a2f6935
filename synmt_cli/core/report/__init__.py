"""The page that holds a comparison: scores, curves, segments and trees, in one file."""
