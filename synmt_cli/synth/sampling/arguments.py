"""Draws a verb's arguments and tense: a clause without its adverbials and inner clauses."""

from dataclasses import dataclass

from synmt_cli.synth.lexicon.entries import PERSON, Adjective, Modal, Pronoun, Verb
from synmt_cli.synth.lexicon.modifiers import MODALS
from synmt_cli.synth.meaning import Clause, Kind, Phrase
from synmt_cli.synth.sampling.dice import Again, Dice
from synmt_cli.synth.sampling.phrases import (
    ALL_SORTS,
    OBJECTS,
    RECIPIENTS,
    SUBJECTS,
    Asked,
    Phrases,
    adjectives,
    may_own,
)
from synmt_cli.synth.sampling.plan import SentencePlan


@dataclass(slots=True)
class Given:
    """The choices that are made before the arguments are drawn.

    oneself: the complement is the subject itself. subject, complement: a pronoun that opens the
    clause. first: the complement opens the German clause. carrier: the argument that bears a
    relative clause, subject or complement, or "".
    """

    role: str
    verb: Verb
    oneself: bool = False
    subject: Phrase | None = None
    complement: Phrase | None = None
    first: bool = False
    carrier: str = ""


class Arguments:
    """Draws the arguments of the clauses of one sentence."""

    def __init__(self, dice: Dice, plan: SentencePlan, phrases: Phrases) -> None:
        self._dice, self._plan, self._phrases = dice, plan, phrases

    def clause(self, given: Given, tenses: tuple[str, ...]) -> Clause:
        """A clause of the verb. tenses: likelier ones are there more often. Raises Again."""
        wants = {
            name for name in self._plan.hosts if self._plan.wants(name, given.role, self._dice)
        }
        negated = "negation" in wants
        tense, modal = self._tense(given.verb, tenses, wants)
        subject = given.subject or self._subject(given, wants)
        clause = Clause(given.verb, subject, tense, modal, negated)
        if given.verb.frame == "copular":
            clause.state = self._state(subject, tense)
        if given.verb.complement:
            clause.complement = given.complement or self._complement(given, subject, wants)
        if given.verb.frame == "ditransitive":
            pronouns = _others(subject, RECIPIENTS)
            clause.recipient = self._phrases.phrase(Asked(PERSON, known=negated, pronouns=pronouns))
        return clause

    def _state(self, subject: Phrase, tense: str) -> Adjective:
        """A predicate for the subject. A lasting state has no perfect ("has been black")."""
        fitting = [
            adjective
            for adjective in adjectives(subject.sort)
            if adjective is not subject.adjective and (adjective.passing or tense != "perfect")
        ]
        return self._dice.pick(fitting)

    def _tense(
        self, verb: Verb, tenses: tuple[str, ...], wants: set[str]
    ) -> tuple[str, Modal | None]:
        dice, plan = self._dice, self._plan
        if "present" in tenses and wants & {"perfect", "modal", "agreement"}:
            compound = [name for name in ("perfect", "modal") if name in wants]
            chosen = plan.lead if plan.lead in compound else dice.pick(compound or ["present"])
            if chosen == "modal" and "agreement" not in wants:  # English modals do not agree
                stative, negated = verb.stative, "negation" in wants
                fitting = [
                    m for m in MODALS if (m.deniable or not negated) and (m.lasting or not stative)
                ]
                return "present", dice.pick(fitting)
            if chosen == "perfect" and verb.stative:
                raise Again
            return "perfect" if chosen == "perfect" else "present", None
        tense = dice.pick(tenses)
        if tense == "past" and not verb.english.past:
            if "present" not in tenses:
                raise Again
            tense = "present"
        return tense, None

    def _subject(self, given: Given, wants: set[str]) -> Phrase:
        unmarked = given.first and self._plan.front == "object-first-ambiguous"
        # After an attribute, an English relative clause could belong to either noun.
        attributed = "agreement" in wants and given.carrier != "subject"
        subject = self._phrases.phrase(
            Asked(
                given.verb.subject or ALL_SORTS,
                role="subject",
                noun=given.carrier == "subject" or attributed,
                known="negation" in wants,
                unmarked=unmarked,
                adjective="adjective" in wants and self._dice.chance(0.6),
                pronouns=() if unmarked else SUBJECTS,
            )
        )
        if attributed:
            subject.attribute = self._phrases.attribute(subject)
        return subject

    def _complement(self, given: Given, subject: Phrase, wants: set[str]) -> Phrase:
        verb = given.verb
        if given.oneself:
            return Phrase(Kind.REFLEXIVE, subject.pronoun, subject.number, subject.gender)
        unmarked = given.first and self._plan.front == "object-first-ambiguous"
        dative = verb.german.case == "Dat"
        carries = given.carrier == "complement"
        return self._phrases.phrase(
            Asked(
                verb.complement,
                number=subject.number if unmarked else "Sing" if verb.local else "",
                noun=carries or given.first or verb.frame == "ditransitive",
                known=given.first or ("negation" in wants and bool(verb.german.preposition)),
                denied="negation" in wants,
                unmarked=unmarked,
                adjective="adjective" in wants,
                possessor=subject if may_own(subject) else None,
                pronouns=_others(subject, RECIPIENTS if dative else OBJECTS),
            )
        )


def _others(subject: Phrase, pronouns: tuple[Pronoun, ...]) -> tuple[Pronoun, ...]:
    """The pronouns that go with the subject: no "I see us", no "he sees him"."""
    return () if subject.kind is Kind.PRONOUN else pronouns
