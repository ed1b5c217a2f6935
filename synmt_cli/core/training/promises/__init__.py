"""What the user's own variants promise, and the checks of it: hooks, and values that are kept."""
