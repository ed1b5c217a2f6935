"""The universal dependency relations. https://universaldependencies.org/u/dep/, version 2.

A label is a relation, or a relation with a subtype: `RELATION:SUBTYPE`.
"""

# Content and function words as CLAS counts them (Nivre and Fang 2017; CoNLL 2018).
CONTENT = frozenset(
    """
    nsubj obj iobj csubj ccomp xcomp obl vocative expl dislocated advcl advmod discourse nmod
    appos nummod acl amod conj fixed flat compound list parataxis orphan goeswith reparandum
    root dep
    """.split()  # noqa: SIM905  as a list it would take thirty lines
)
FUNCTION = frozenset(("aux", "cop", "mark", "det", "clf", "case", "cc"))
PUNCT = "punct"
RELATIONS = CONTENT | FUNCTION | {PUNCT}
ROOT_LABEL = "root"
UNSPECIFIED = "dep"  # the relation of an arc for which no better one is known


def universal(label: str) -> str:
    """The relation of a label, without its subtype.

    >>> universal("nsubj:pass"), len(RELATIONS)
    ('nsubj', 37)
    """
    return label.partition(":")[0]
