"""Bytes in and out: what a line is, how inputs are opened, how files appear whole."""
