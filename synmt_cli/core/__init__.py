"""What synmt computes. Never prints, never knows a command line."""
