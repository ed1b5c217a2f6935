"""The verbs of the lexicon that fit a clause."""

from functools import cache
from typing import NamedTuple

from synmt_cli.synth.lexicon.entries import Verb
from synmt_cli.synth.lexicon.verbs import VERBS

TRANSITIVE = frozenset(("transitive", "ditransitive"))
STATEMENT = TRANSITIVE | {"intransitive"}
CLAUSAL = frozenset(("that", "whether"))


class Need(NamedTuple):
    """The verb that a clause needs. must: a kind it has, "" for any. allowed: its only kinds.

    frames: it has one of these. subject, complement: it takes one of these sorts; 0 for any.
    preposition: whether English has one; None for either. oneself: the complement may be the
    subject itself. active: adverbials go with it. bare: a plain object in both languages.
    placeless: its complement is not a place.
    """

    frames: frozenset[str]
    must: str = ""
    allowed: frozenset[str] = frozenset()
    subject: int = 0
    complement: int = 0
    preposition: bool | None = None
    oneself: bool = False
    active: bool = False
    bare: bool = False
    placeless: bool = False


@cache
def verbs(need: Need) -> tuple[Verb, ...]:
    """The verbs that fit, in the order of the lexicon."""
    return tuple(
        verb
        for verb in VERBS
        if verb.frame in need.frames
        and (not need.must or need.must in verb.kinds)
        and verb.kinds <= need.allowed
        and _fits(verb, need)
    )


def _fits(verb: Verb, need: Need) -> bool:
    stranded = bool(verb.english.preposition)
    plain = not (stranded or verb.german.preposition or verb.german.reflexive)
    return (
        (not need.subject or bool(need.subject & verb.subject))
        and (not need.complement or bool(need.complement & verb.complement))
        and need.preposition in (None, stranded)
        and (verb.oneself or not need.oneself)
        and not (need.active and verb.stative)
        and (plain or not need.bare)
        and not (need.placeless and verb.local)
    )
