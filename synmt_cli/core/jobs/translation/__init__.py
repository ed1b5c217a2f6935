"""Translation: records, an engine, the search in several processes, and the output."""
