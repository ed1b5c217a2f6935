"""What `synmt score` reports: written, read back, and compared over several test sets."""
