"""Folders of experiments: what `synmt init` writes, for make to run."""
