"""The meaning of a sentence before either language says it: phrases and clauses.

Every choice that shows on one side is recorded here once, so that both sides make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from synmt_cli.synth.lexicon.entries import (
    PERSON,
    Adjective,
    Adverb,
    Conjunction,
    Modal,
    Noun,
    Preposition,
    Pronoun,
    Verb,
)
from synmt_cli.synth.lexicon.nouns import HE


class Kind(Enum):
    """The form of a phrase. RELATIVE and QUESTION are pronouns that open their clause."""

    NOUN = "noun"
    NAME = "name"
    PRONOUN = "pronoun"
    REFLEXIVE = "reflexive"
    RELATIVE = "relative"
    QUESTION = "question"


class Determiner(Enum):
    """The word that opens a noun phrase. INDEFINITE has none in the plural."""

    DEFINITE = "definite"
    INDEFINITE = "indefinite"
    THIS = "this"
    EVERY = "every"
    POSSESSIVE = "possessive"
    SOME = "some"
    TWO = "two"
    THREE = "three"

    @property
    def deprel(self) -> str:
        """The relation of the determiner to its noun."""
        return "nummod" if self in (Determiner.TWO, Determiner.THREE) else "det"


@dataclass(slots=True)
class Phrase:
    """Who or what. pronoun: the one that would replace it; it gives person and reflexive.

    number: Sing or Plur. gender: that of the German word; for RELATIVE, that of the antecedent.
    possessor: the one that a possessive names. attribute: a preposition and its phrase after the
    noun.
    """

    kind: Kind
    pronoun: Pronoun
    number: str
    gender: str
    noun: Noun | None = None
    determiner: Determiner = Determiner.DEFINITE
    possessor: Phrase | None = None
    adjective: Adjective | None = None
    attribute: tuple[Preposition, Phrase] | None = None
    relative: Clause | None = None

    @property
    def sort(self) -> int:
        """The sort of its noun; a pronoun alone is a person."""
        return PERSON if self.noun is None else self.noun.sort

    @property
    def asks_who(self) -> bool:
        """Whether a QUESTION asks for a person rather than a thing."""
        return self.pronoun is HE

    @property
    def moved(self) -> bool:
        """Whether it opens its clause as a relative or interrogative pronoun."""
        return self.kind in (Kind.RELATIVE, Kind.QUESTION)

    @property
    def agreement(self) -> tuple[int, str]:
        """Person and number, as the verb shows them."""
        return self.pronoun.person, self.number


@dataclass(slots=True)
class Clause:
    """Who does what to whom, when and where.

    tense: present, past or perfect; present with a modal. state: the predicate of `be`.
    complement: takes the preposition or case that the verb asks for in each language.
    place: preposition and phrase. front: the field that German puts before the verb, "" for the
    subject; english_front: the same for English. apart: the English particle follows the object.
    extraposed: German puts the complement's relative clause after the verb.
    embedded: a that- or whether-clause. circumstance: an adverbial clause.
    """

    verb: Verb
    subject: Phrase
    tense: str = "present"
    modal: Modal | None = None
    negated: bool = False
    state: Adjective | None = None
    complement: Phrase | None = None
    recipient: Phrase | None = None
    time: Adverb | None = None
    frequency: Adverb | None = None
    manner: Adverb | None = None
    place: tuple[Preposition, Phrase] | None = None
    embedded: tuple[Conjunction, Clause] | None = None
    circumstance: tuple[Conjunction, Clause] | None = None
    front: str = ""
    english_front: str = ""
    apart: bool = True
    extraposed: bool = False

    @property
    def is_question(self) -> bool:
        """Whether it asks for its complement."""
        return self.complement is not None and self.complement.kind is Kind.QUESTION
