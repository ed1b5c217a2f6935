"""Streaming readers and writers: bytes to plain dataclasses and back. Never torch."""
