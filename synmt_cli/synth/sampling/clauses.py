"""Draws the clauses of one sentence by its plan; raises Again if it cannot be completed."""

from synmt_cli.synth.description import cue
from synmt_cli.synth.lexicon.entries import ANIMAL, PERSON, Adverb
from synmt_cli.synth.lexicon.modifiers import (
    CIRCUMSTANCES,
    FREQUENCIES,
    MANNERS,
    NOW,
    THAT,
    TODAY,
    TOMORROW,
    WHETHER,
    YESTERDAY,
)
from synmt_cli.synth.lexicon.nouns import HE, IT
from synmt_cli.synth.lexicon.verbs import BE
from synmt_cli.synth.meaning import Clause, Kind, Phrase
from synmt_cli.synth.sampling.arguments import Arguments, Given
from synmt_cli.synth.sampling.dice import Again, Dice
from synmt_cli.synth.sampling.phrases import Phrases
from synmt_cli.synth.sampling.plan import KINDS, SentencePlan
from synmt_cli.synth.sampling.verb_choice import CLAUSAL, STATEMENT, TRANSITIVE, Need, verbs
from synmt_cli.synth.settings import SynthSettings

ANY_TENSE = ("present", "present", "present", "past", "past")
LIVING = PERSON | ANIMAL


class Clauses:
    """One sentence in the making."""

    def __init__(self, settings: SynthSettings, dice: Dice, plan: SentencePlan) -> None:
        self._settings, self._dice, self._plan = settings, dice, plan
        self._phrases = Phrases(dice)
        self._arguments = Arguments(dice, plan, self._phrases)

    def main(self) -> Clause:
        """The main clause with everything in it."""
        plan = self._plan
        if plan.front == "stranding":
            return self._question()
        if plan.subordinate == "embedded":
            return self._with_embedded()
        if plan.subordinate == "circumstance":
            return self._with_circumstance()
        return self._statement("main", plan.depth, ANY_TENSE, self._front())

    def _front(self) -> str:
        """The field of Clause that opens the main clause, or "" for the subject."""
        if self._plan.front == "fronting":
            return "time" if self._dice.chance(0.6) else "place"
        return "complement" if self._plan.front else ""

    def _question(self) -> Clause:
        given = self._verb("main", Need(TRANSITIVE, preposition=True, placeless=True))
        sorts = given.verb.complement
        who = sorts & PERSON and (not sorts & ~LIVING or self._dice.chance(0.5))
        given.complement = Phrase(Kind.QUESTION, HE if who else IT, "Sing", "")
        clause = self._filled(given, self._plan.depth, ANY_TENSE)
        self._add_adverbials(clause)
        return clause

    def _with_embedded(self) -> Clause:
        plan = self._plan
        given = self._verb("main", Need(CLAUSAL, active=plan.front == "fronting"))
        own = plan.depth if self._dice.chance(0.3) else 0
        clause = self._filled(given, own, ANY_TENSE)
        tenses = ("present", "present", "past") if clause.tense == "present" else ("past",)
        inner = self._statement("other", plan.depth - own, tenses)
        clause.embedded = (THAT if given.verb.frame == "that" else WHETHER, inner)
        self._add_adverbials(clause, "time" if plan.front == "fronting" else "", trailing=False)
        return clause

    def _with_circumstance(self) -> Clause:
        plan, dice = self._plan, self._dice
        front = self._front()
        if plan.front == "fronting" and dice.chance(0.5):
            front = "circumstance"
        own = plan.depth if dice.chance(0.5) else 0
        opens = front == "circumstance" and self._settings.marked
        # After a relative clause, the second English clause could belong to either.
        carriers = ("subject", "complement") if opens else ("subject",)
        clause = self._statement("main", own, ANY_TENSE, front, carriers)
        tenses = {"present": ("present",), "past": ("past",)}.get(clause.tense, ("past", "present"))
        inner = self._statement("other", plan.depth - own, tenses)
        plain = clause.tense == inner.tense != "perfect"
        n_fitting = 2 if not plain else 4 if clause.tense == "present" else 3
        clause.circumstance = (dice.pick(CIRCUMSTANCES[:n_fitting]), inner)
        return clause

    def _statement(
        self,
        role: str,
        depth: int,
        tenses: tuple[str, ...],
        front: str = "",
        carriers: tuple[str, ...] = ("subject", "complement"),
    ) -> Clause:
        """A clause without a gap. carriers: the arguments that may bear a relative clause."""
        first = front == "complement"
        opens = front in ("time", "place")
        given = self._verb(role, Need(TRANSITIVE if first else STATEMENT, active=opens, bare=first))
        given.first = first
        clause = self._filled(given, depth, tenses, carriers)
        self._add_adverbials(clause, front, trailing=given.carrier != "complement")
        return clause

    def _relative(self, antecedent: Phrase, role: str, depth: int, tense: str) -> Clause:
        """A relative clause on `antecedent` that is `depth` deep, itself included."""
        dice, sort = self._dice, antecedent.sort
        gap = Phrase(
            Kind.RELATIVE,
            antecedent.pronoun,
            antecedent.number,
            antecedent.gender,
            antecedent.noun,
        )
        tenses = ("past",) if tense == "past" else ("present", "present", "past")
        strands = self._plan.strands and (role == "relative" or dice.chance(0.5))
        if strands or dice.chance(0.5 if sort & LIVING else 0.85):
            given = self._verb(role, Need(TRANSITIVE, complement=sort, preposition=strands))
            given.complement = gap
        else:
            frames = STATEMENT if depth == 1 else TRANSITIVE
            given = self._verb(role, Need(frames, subject=sort))
            given.subject = gap
        clause = self._filled(given, depth - 1, tenses)
        if given.complement is not None and cue(clause) == "none":
            raise Again  # "die Frau, die das Kind sieht" reads as who sees the child
        self._add_adverbials(clause, trailing=given.carrier != "complement")
        return clause

    def _filled(
        self,
        given: Given,
        depth: int,
        tenses: tuple[str, ...],
        carriers: tuple[str, ...] = ("subject", "complement"),
    ) -> Clause:
        """A clause with its arguments, one of which bears a relative clause `depth` deep."""
        if depth:
            given.carrier = self._dice.pick([name for name in carriers if self._bears(given, name)])
        clause = self._arguments.clause(given, tenses)
        carrier = clause.subject if given.carrier == "subject" else clause.complement
        if depth and carrier is not None:
            role = "nested" if given.role in ("relative", "nested") else "relative"
            carrier.relative = self._relative(carrier, role, depth, clause.tense)
        clause.apart = self._apart(clause)
        clause.extraposed = self._extraposes(given, clause)
        return clause

    def _bears(self, given: Given, name: str) -> bool:
        """Whether that argument will be a noun that can bear a relative clause."""
        if name == "subject":
            return given.subject is None
        return bool(given.verb.complement) and given.complement is None and not given.oneself

    def _apart(self, clause: Clause) -> bool:
        """Whether the English particle follows the object."""
        phrase, place = clause.complement, self._settings.particles
        if phrase is None or phrase.kind not in (Kind.NOUN, Kind.NAME) or place == "split":
            return True
        if place == "weight":
            return phrase.relative is None
        return place == "mixed" and self._dice.chance(0.5)

    def _extraposes(self, given: Given, clause: Clause) -> bool:
        """Whether German puts the complement's relative clause after the end of the verb."""
        ends = clause.tense == "perfect" or clause.modal or clause.verb.german.prefix
        return (
            self._settings.extrapose
            and given.carrier == "complement"
            and not given.first
            and (given.role != "main" or bool(ends))
        )

    def _verb(self, role: str, need: Need) -> Given:
        """A verb of a kind that the plan wants in this clause. Raises Again."""
        dice, plan = self._dice, self._plan
        musts = [kind for kind in KINDS if plan.wants(kind, role, dice)]
        if not musts:
            fitting = verbs(need)
            if "intransitive" in need.frames and (not fitting or dice.chance(0.1)):
                return Given(role, BE)
            return Given(role, dice.pick(fitting))
        must = plan.lead if plan.lead in musts else dice.pick(musts)
        need = need._replace(allowed=plan.wishes & set(KINDS))
        oneself = not (need.complement or need.preposition or need.bare)
        if must == "reflexive" and oneself and "transitive" in need.frames and dice.chance(0.5):
            return Given(role, dice.pick(verbs(need._replace(oneself=True))), oneself=True)
        return Given(role, dice.pick(verbs(need._replace(must=must))))

    def _add_adverbials(self, clause: Clause, front: str = "", trailing: bool = True) -> None:
        """Adds adverbials where they can belong to one clause only. Raises Again.

        After a relative or embedded clause an English adverbial would read as part of it.
        front: the field that opens the clause, "" for the subject. trailing: whether its end is
        free.
        """
        clause.front = front
        clause.english_front = front if self._settings.marked else ""
        if front in ("time", "place"):
            self._open(clause, front, trailing)
        if _is_lasting(clause):
            return
        if trailing:
            self._add_trailing(clause)
        timeless = clause.time is None and clause.modal is None and not clause.negated
        if timeless and self._dice.chance(0.12):
            clause.frequency = self._dice.pick(FREQUENCIES)

    def _open(self, clause: Clause, front: str, trailing: bool) -> None:
        if _is_lasting(clause) or not (self._settings.marked or trailing):
            raise Again
        if front == "time":
            clause.time = self._time(clause)
        elif clause.verb.local or clause.state is not None:
            raise Again
        else:
            clause.place = self._phrases.place()

    def _add_trailing(self, clause: Clause) -> None:
        dice, verb = self._dice, clause.verb
        is_placed = verb.local or clause.negated or clause.state is not None
        if clause.time is None and dice.chance(0.2):
            clause.time = self._time(clause)
        if verb.manner and not clause.is_question and dice.chance(0.25):
            clause.manner = dice.pick(MANNERS[verb.manner])
        elif clause.place is None and not is_placed and dice.chance(0.15):
            clause.place = self._phrases.place()

    def _time(self, clause: Clause) -> Adverb:
        if clause.modal is not None:
            return self._dice.pick((TODAY, TOMORROW))
        if clause.tense == "past":
            return self._dice.pick((TODAY, YESTERDAY))
        return self._dice.pick((TODAY, NOW) if clause.tense == "present" else (TODAY,))


def _is_lasting(clause: Clause) -> bool:
    """Whether the clause describes a lasting state: no "today", no "often"."""
    return clause.verb.stative or (clause.state is not None and not clause.state.passing)
