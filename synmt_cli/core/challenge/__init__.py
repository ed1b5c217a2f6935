"""Sentences chosen for a phenomenon, and whether a translation keeps it."""
