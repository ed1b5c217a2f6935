"""Who does what to whom in an English sentence with two known nouns.

    active        the noun before the verb is the subject    the child brings the ball
    object first  two noun phrases, then the verb            the ball the child brings
    passive       the noun after `by` is the subject         the ball is brought by the child
    undecided     anything else, with the reason

By rules over words, without a parser: the sentences are as short as the rules. A verb is a
form in the lexicon, or another word that is inflected like one (-s, -ed, -ing) and is not
listed as something else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from synmt_cli.core.challenge.english_roles import (
    AUXILIARIES,
    BE,
    CLAUSE_ENDS,
    DETERMINERS,
    FINITE,
    NO_VERBS,
    NOUNS,
    PARTICIPLES,
    PREPOSITIONS,
    PROGRESSIVE,
    RELATIVES,
    VERB_ENDINGS,
)
from synmt_cli.core.challenge.mixup import Item
from synmt_cli.formats.reports.mixup_scores import JudgedTranslation

ACTIVE, PASSIVE = "active", "passive"
RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|[.,;:!?]")


@dataclass(frozen=True, slots=True)
class Verdict:
    """RIGHT, WRONG or UNDECIDED; ACTIVE or PASSIVE where decided, else the reason."""

    verdict: str
    voice: str = ""
    reason: str = ""


class Undecided(Exception):
    """The reason why a translation cannot be judged."""


def judge(item: Item, translation: str) -> Verdict:
    """Whether a translation keeps the roles of a sentence.

    >>> item = Item("", "both", "ovs", "Hund", "bringt", "Ball")
    >>> judge(item, "The ball was brought by the dog.")
    Verdict(verdict='right', voice='passive', reason='')
    """
    words = _TOKEN.findall(translation.lower().replace("’", "'"))
    try:
        subject = _place(words, item.subject, "subject")
        object = _place(words, item.object, "object")
        agent, voice = _agent(words, *sorted((subject, object)))
    except Undecided as reason:
        return Verdict(UNDECIDED, reason=str(reason))
    return Verdict(RIGHT if agent == subject else WRONG, voice)


def judged(item: Item, translation: str) -> JudgedTranslation:
    """The same, as reports have it."""
    verdict = judge(item, translation)
    outcome = f"{verdict.verdict}_{verdict.voice}" if verdict.voice else verdict.verdict
    facts = (item.id, item.construction, item.order, item.sentence, translation)
    return JudgedTranslation(*facts, outcome, verdict.reason)


def _place(words: Sequence[str], noun: str, role: str) -> int:
    """Where the one word for a German noun is. Raises Undecided."""
    places = [place for place, word in enumerate(words) if word in NOUNS[noun]]
    if len(places) != 1:
        raise Undecided(f"{'no' if not places else 'more than one'} {role}")
    return places[0]


def _agent(words: Sequence[str], first: int, second: int) -> tuple[int, str]:
    """The place of the noun that acts, and the voice. Raises Undecided."""
    between, after = words[first + 1 : second], words[second + 1 :]
    if CLAUSE_ENDS.intersection(between):
        raise Undecided("more than one clause")
    if _is_after_preposition(words[:first]):
        raise Undecided("the first noun is behind a preposition")
    if "by" in between:
        return _by(between, second)
    if BE.intersection(between):
        if any(_is_progressive(word) for word in between):
            return first, ACTIVE
        is_passive = any(_is_participle(word) for word in between)
        raise Undecided("passive without by" if is_passive else "no verb of action")
    if any(_is_verb(word) for word in between):
        return first, ACTIVE
    if _is_object_first(between, after):
        return second, ACTIVE
    raise Undecided("no verb between the nouns")


def _is_after_preposition(before: Sequence[str]) -> bool:
    """Whether the words before a noun end with a preposition and determiners."""
    while before and before[-1] in DETERMINERS:
        before = before[:-1]
    return bool(before) and before[-1] in PREPOSITIONS


def _by(between: Sequence[str], second: int) -> tuple[int, str]:
    """Passive, with or without a form of be, if `by` belongs to the second noun."""
    at = len(between) - 1 - list(reversed(between)).index("by")
    verb, phrase = between[:at], between[at + 1 :]
    known = any(word in PARTICIPLES for word in verb)
    other = bool(BE.intersection(verb)) and any(_is_participle(word) for word in verb)
    if not (known or other) or any(_is_verb(word) for word in phrase):
        raise Undecided("by without a passive")
    return second, PASSIVE


def _is_object_first(between: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the nouns are the heads of two phrases and a verb follows."""
    if not DETERMINERS.intersection(between) or set(between) - DETERMINERS - RELATIVES:
        return False
    while after and after[0] in AUXILIARIES:
        after = after[1:]
    return bool(after) and _is_verb(after[0]) and not _is_progressive(after[0])


def _is_verb(word: str) -> bool:
    return word in FINITE or word in PARTICIPLES or word in PROGRESSIVE or _is_inflected(word)


def _is_inflected(word: str, endings: tuple[str, ...] = VERB_ENDINGS) -> bool:
    return len(word) > 3 and word.endswith(endings) and word not in NO_VERBS and "'" not in word


def _is_progressive(word: str) -> bool:
    return word in PROGRESSIVE or (_is_inflected(word, ("ing",)) and word != "being")


def _is_participle(word: str) -> bool:
    return word in PARTICIPLES or _is_inflected(word, ("ed", "en"))
