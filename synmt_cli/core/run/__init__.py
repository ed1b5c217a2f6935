"""Run directories: settings, weights, and the model that they make."""
