"""A small grammar of English and German: sentence pairs with gold trees on both sides.

A sentence is first drawn as a meaning without words (meaning, sampling), then said in English
(english) and in German (german) from one lexicon (lexicon). What a language leaves open is
decided by rule, so that either side determines the other.
"""
