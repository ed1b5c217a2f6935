"""Pictures of trees: where arcs and words go, as SVG, as LaTeX, and on a page."""
