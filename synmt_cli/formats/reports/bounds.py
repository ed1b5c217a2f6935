"""Bounds of the settings of a search, which options and the reports of `synmt tune` share."""

MOST_LENPEN, MOST_BEAM, LEAST_PATIENCE = 10, 1000, 0.01
