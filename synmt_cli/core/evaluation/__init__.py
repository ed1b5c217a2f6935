"""Metrics, significance, buckets."""
