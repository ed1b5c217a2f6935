"""What a file is and holds, and what is wrong with it."""
