"""What synmt computes. Never prints or parses a command line; its messages may name an option."""
