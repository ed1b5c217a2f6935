"""Continuous batching: which sources are searched next, in which rows, and what the cache holds."""
