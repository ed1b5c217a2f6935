"""The models, each a bundle of modifiers."""
