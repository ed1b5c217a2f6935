"""Draws noun phrases."""

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

ALL_SORTS = (1 << len(SORTS)) - 1
_OWNED = mask("small device vehicle")


def _weights(text: str) -> list[tuple[Determiner, float]]:
    """Determiners and how often each is drawn."""
    words = text.split()
    return [(Determiner(name), float(n)) for name, n in zip(words[::2], words[1::2], strict=True)]


_USUAL = {  # by number and role of the phrase
    ("Sing", "subject"): _weights("definite 60 indefinite 17 this 13 every 10"),
    ("Sing", "other"): _weights("definite 58 indefinite 28 this 14"),
    ("Plur", "subject"): _weights("definite 50 indefinite 12 this 13 some 12 two 8 three 5"),
    ("Plur", "other"): _weights("definite 46 indefinite 20 this 10 some 10 two 9 three 5"),
}
_KNOWN = _weights("definite 80 this 20")
_DENIED = _weights("definite 50 indefinite 35 this 15")
SUBJECTS = (ME, HE, SHE, WE, THEY)
OBJECTS = (ME, HE, WE)  # not "sie", which is both her and them
RECIPIENTS = SUBJECTS


@dataclass(frozen=True, slots=True)
class Asked:
    """The conditions that a phrase must meet. sorts: those that its noun may have.

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
        return self._dice.weighted(_USUAL[number, asked.role])

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
        """A place where something happens. Raises Again."""
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
    pronoun = phrase.pronoun
    return phrase.number == "Plur" or pronoun.person == 1 or pronoun.gender == phrase.gender
