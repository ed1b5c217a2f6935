"""Text and the models that cut it: subword vocabularies, parsers."""
