"""Text and the models that split it: subword vocabularies and parsers."""
