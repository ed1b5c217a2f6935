"""Word forms with their UD analysis: those that both languages make in the same way."""

from functools import cache
from typing import NamedTuple

from synmt_cli.synth.lexicon.entries import Pronoun


class MadeWord(NamedTuple):
    """A form and the middle of its CoNLL-U row: lemma, UPOS, XPOS and features."""

    form: str
    analysis: str


@cache
def word(form: str, lemma: str, upos: str, **features: str | int | None) -> MadeWord:
    """A word. Features without a value are left out; the rest are sorted as UD does.

    >>> word("dogs", "dog", "NOUN", Number="Plur")
    MadeWord(form='dogs', analysis='dog\\tNOUN\\t_\\tNumber=Plur')
    """
    kept = sorted((name.lower(), f"{name}={value}") for name, value in features.items() if value)
    return MadeWord(form, f"{lemma}\t{upos}\t_\t{'|'.join(text for _, text in kept) or '_'}")


COMMA, PERIOD, QUESTION_MARK = (word(mark, mark, "PUNCT") for mark in ",.?")


def adposition(form: str) -> MadeWord:
    """A preposition, the particle of a verb or a separated prefix."""
    return word(form, form, "ADP")


def subordinator(form: str) -> MadeWord:
    """A subordinating conjunction."""
    return word(form, form, "SCONJ")


def personal(form: str, lemma: str, entry: Pronoun, **features: str | None) -> MadeWord:
    """A form of a personal pronoun: its person and number, and its gender in the singular."""
    features = {"Gender": entry.gender if entry.number == "Sing" else None, **features}
    return word(
        form,
        lemma,
        "PRON",
        Number=entry.number,
        Person=entry.person,
        PronType="Prs",
        **features,
    )


def finite(
    form: str, lemma: str, upos: str, agreement: tuple[int, str], is_past: bool, mood: str = "Ind"
) -> MadeWord:
    """A finite verb. agreement: person and number."""
    person, number = agreement
    return word(
        form,
        lemma,
        upos,
        Mood=mood,
        Number=number,
        Person=person,
        Tense="Past" if is_past else "Pres",
        VerbForm="Fin",
    )
