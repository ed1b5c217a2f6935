"""The words of both languages, what they mean together, and the tables they are read from."""
