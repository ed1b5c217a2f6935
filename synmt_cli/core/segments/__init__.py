"""Segments: one line of text each, as text, record or trees."""
