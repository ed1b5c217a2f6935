"""Which pairs are fit to train on: the segments, the tests, and their order."""
