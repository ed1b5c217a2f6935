"""German: its forms, and a meaning said in it."""
