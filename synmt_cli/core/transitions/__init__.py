"""Trees written as sequences of tokens, and read back from them."""
