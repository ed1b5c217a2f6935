"""Draws noun phrases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from synmt_cli.synth.lexicon.entries import (
    PERSON,
    SORTS,
    Adjective,
    Noun,
    Preposition,
    Pronoun,
    mask,
)
from synmt_cli.synth.lexicon.modifiers import ADJECTIVES, ATTRIBUTES, PLACES
from synmt_cli.synth.lexicon.nouns import HE, ME, NAMES, NOUNS, SHE, THEY, WE
from synmt_cli.synth.meaning import Determiner, Kind, Phrase
from synmt_cli.synth.sampling.dice import Again, Dice

D = Determiner
ALL_SORTS = (1 << len(SORTS)) - 1
_OWNED = mask("small device vehicle")
_COUNTS = {
    ("Sing", "subject"): (
        (D.DEFINITE, 60.0),
        (D.INDEFINITE, 17.0),
        (D.THIS, 13.0),
        (D.EVERY, 10.0),
    ),
    ("Sing", "other"): ((D.DEFINITE, 58.0), (D.INDEFINITE, 28.0), (D.THIS, 14.0)),
    ("Plur", "subject"): (
        (D.DEFINITE, 50.0),
        (D.INDEFINITE, 12.0),
        (D.THIS, 13.0),
        (D.SOME, 12.0),
        (D.TWO, 8.0),
        (D.THREE, 5.0),
    ),
    ("Plur", "other"): (
        (D.DEFINITE, 46.0),
        (D.INDEFINITE, 20.0),
        (D.THIS, 10.0),
        (D.SOME, 10.0),
        (D.TWO, 9.0),
        (D.THREE, 5.0),
    ),
}
_KNOWN = ((D.DEFINITE, 80.0), (D.THIS, 20.0))
_DENIED = ((D.DEFINITE, 50.0), (D.INDEFINITE, 35.0), (D.THIS, 15.0))
SUBJECTS = (ME, HE, SHE, WE, THEY)
OBJECTS = (ME, HE, WE)  # not "sie", which is both her and them
RECIPIENTS = (ME, HE, SHE, WE, THEY)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a phrase must be. sorts: of its noun.

    role: subject or other. number: Sing, Plur, or "" for either. noun: not a name or pronoun.
    known: definite. denied: its clause is negated. unmarked: accusative looks like nominative.
    adjective: it has one. possessor: who may own it. pronouns: those that may replace it.
    """

    sorts: int
    role: str = "other"
    number: str = ""
    noun: bool = False
    known: bool = False
    denied: bool = False
    unmarked: bool = False
    adjective: bool = False
    possessor: Phrase | None = None
    pronouns: tuple[Pronoun, ...] = ()


@cache
def _nouns(sorts: int, unmarked: bool) -> tuple[Noun, ...]:
    return tuple(
        noun for noun in NOUNS if noun.sort & sorts and not (unmarked and noun.gender == "Masc")
    )


@cache
def adjectives(sorts: int) -> tuple[Adjective, ...]:
    """The adjectives that fit nouns of these sorts."""
    return tuple(adjective for adjective in ADJECTIVES if adjective.sorts & sorts)


@cache
def _attributes(sorts: int) -> tuple[tuple[Preposition, int], ...]:
    return tuple((preposition, others) for of, preposition, others in ATTRIBUTES if of & sorts)


class Phrases:
    """Draws the phrases of one sentence; no noun comes twice."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._used: set[Noun] = set()

    def phrase(self, asked: Asked) -> Phrase:
        """A pronoun, a name or a noun phrase. Raises Again."""
        dice = self._dice
        if not asked.noun and asked.sorts & PERSON:
            if asked.pronouns and dice.chance(0.18 if asked.role == "subject" else 0.06):
                pronoun = dice.pick(asked.pronouns)
                return Phrase(Kind.PRONOUN, pronoun, pronoun.number, pronoun.gender)
            if dice.chance(0.15):
                noun = self._fresh(NAMES)
                return Phrase(Kind.NAME, noun.pronoun, "Sing", noun.gender, noun)
        return self._noun_phrase(asked)

    def _noun_phrase(self, asked: Asked) -> Phrase:
        dice = self._dice
        number = asked.number or ("Sing" if dice.chance(0.62) else "Plur")
        noun = self._fresh(_nouns(asked.sorts, asked.unmarked and number == "Sing"))
        phrase = Phrase(
            Kind.NOUN, noun.pronoun if number == "Sing" else THEY, number, noun.gender, noun
        )
        if (
            asked.possessor is not None
            and not asked.known
            and noun.sort & _OWNED
            and dice.chance(0.25)
        ):
            phrase.determiner, phrase.possessor = Determiner.POSSESSIVE, asked.possessor
        else:
            phrase.determiner = self._determiner(asked, number)
        if asked.adjective:
            phrase.adjective = dice.pick(adjectives(noun.sort))
        return phrase

    def _determiner(self, asked: Asked, number: str) -> Determiner:
        if asked.known:
            return self._dice.weighted(_KNOWN)
        if asked.denied:
            return self._dice.weighted(_DENIED)
        return self._dice.weighted(_COUNTS[number, asked.role])

    def _fresh(self, nouns: tuple[Noun, ...]) -> Noun:
        for _ in range(8):
            noun = self._dice.pick(nouns)
            if noun not in self._used:
                self._used.add(noun)
                return noun
        raise Again

    def attribute(self, phrase: Phrase) -> tuple[Preposition, Phrase]:
        """An attribute for the noun of `phrase`, in the other number. Raises Again."""
        preposition, sorts = self._dice.pick(_attributes(phrase.sort))
        number = "Plur" if phrase.number == "Sing" else "Sing"
        return preposition, self._noun_phrase(Asked(sorts, number=number, noun=True, known=True))

    def place(self) -> tuple[Preposition, Phrase]:
        """Where something happens. Raises Again."""
        preposition, noun = self._dice.pick(PLACES)
        if noun in self._used:
            raise Again
        self._used.add(noun)
        return preposition, Phrase(Kind.NOUN, noun.pronoun, "Sing", noun.gender, noun)


def may_own(phrase: Phrase) -> bool:
    """Whether a possessive can refer to the phrase with the same gender in both languages.

    Das Mädchen is `she` in English and neuter in German, so it gets no possessive.
    """
    if phrase.sort != PERSON:
        return False
    return phrase.number == "Plur" or phrase.person == 1 or phrase.pronoun.gender == phrase.gender
