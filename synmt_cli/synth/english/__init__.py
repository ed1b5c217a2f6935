"""English: its word forms, and how it says a meaning."""
