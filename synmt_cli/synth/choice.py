"""Which verbs fit where: the lexicon's verbs by what a clause needs."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from synmt_cli.synth.lexemes import Verb
from synmt_cli.synth.verbs import VERBS

TRANSITIVE = frozenset(("transitive", "ditransitive"))
STATEMENT = TRANSITIVE | {"intransitive"}
CLAUSAL = frozenset(("that", "whether"))


class Need(NamedTuple):
    """What a verb must be. must: a kind it has, "" for any. allowed: no other kinds than these.

    frames: one of these. subject, complement: sorts, of which it takes one; 0 for any.
    preposition: English has one, or has none; None for either. oneself: the complement may be
    the subject itself. active: adverbials go with it. bare: a plain object on both sides.
    placeless: its complement is no place.
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
        and _takes(verb, need)
        and _behaves(verb, need)
    )


def _takes(verb: Verb, need: Need) -> bool:
    return all(
        not asked or asked & taken
        for asked, taken in ((need.subject, verb.subject), (need.complement, verb.complement))
    )


def _behaves(verb: Verb, need: Need) -> bool:
    stranded = bool(verb.english.preposition)
    plain = not (stranded or verb.german.preposition or verb.german.reflexive)
    return (
        need.preposition in (None, stranded)
        and (verb.oneself or not need.oneself)
        and not (need.active and verb.stative)
        and (plain or not need.bare)
        and not (need.placeless and verb.local)
    )
