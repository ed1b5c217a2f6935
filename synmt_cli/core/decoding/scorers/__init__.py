"""Scores that models give to the next token of prefixes."""
