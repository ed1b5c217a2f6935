"""What models say of the next token of prefixes."""
