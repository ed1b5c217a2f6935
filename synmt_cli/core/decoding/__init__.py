"""From a source to its best translations: scorers of the next token, and search over them."""
