"""The reports of `synmt score`: written, read back, and compared over several test sets."""
