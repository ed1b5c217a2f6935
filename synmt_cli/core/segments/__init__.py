"""Segments: what one line of text is, as text, record or trees."""
