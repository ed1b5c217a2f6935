"""Whether a difference is more than chance: tests, intervals, corrections."""
