"""Syntax-aware neural machine translation as composable command-line tools."""

__version__ = "0.1.0"
