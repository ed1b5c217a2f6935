"""What each filter does to its segments."""
