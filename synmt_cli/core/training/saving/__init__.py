"""What a training leaves in its run directory: checkpoints, its metrics, and events to watch."""
