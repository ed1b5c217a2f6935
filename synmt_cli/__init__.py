"""Syntax-aware neural machine translation as composable command-line tools, and as a library."""

__version__ = "0.1.0"
