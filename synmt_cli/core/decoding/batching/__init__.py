"""Continuous batching: who is searched next, in which rows, and what their cache holds."""
