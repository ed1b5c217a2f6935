"""Selects the pairs that are fit to train on: the tests, their order, and the outputs."""
