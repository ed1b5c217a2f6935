"""Results as tables, TSV and JSON."""
