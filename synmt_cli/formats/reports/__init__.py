"""Results as tables, TSV, CSV, JSON, LaTeX and Markdown."""
