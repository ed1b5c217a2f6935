"""Models for CTranslate2: how one is made of a trained model, written and read."""
