"""The files that training leaves in its run directory: checkpoints, metrics, events to watch."""
