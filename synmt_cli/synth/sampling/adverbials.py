"""Draws adverbials of time, place, manner and frequency."""

from synmt_cli.synth.lexicon.entries import Adverb
from synmt_cli.synth.lexicon.modifiers import FREQUENCIES, MANNERS, NOW, TODAY, TOMORROW, YESTERDAY
from synmt_cli.synth.meaning import Clause
from synmt_cli.synth.sampling.dice import Again, Dice
from synmt_cli.synth.sampling.phrases import Phrases
from synmt_cli.synth.settings import SynthSettings


class Adverbials:
    """Adds adverbials to the clauses of one sentence, where they can belong to one clause only.

    After a relative or embedded clause an English adverbial would read as part of it.
    """

    def __init__(self, settings: SynthSettings, dice: Dice, phrases: Phrases) -> None:
        self._settings, self._dice, self._phrases = settings, dice, phrases

    def add(self, clause: Clause, front: str = "", trailing: bool = True) -> None:
        """Adds adverbials. front: time or place if one is to open the clause. Raises Again.

        trailing: whether the end of the clause is free.
        """
        opens = front in ("time", "place")
        if opens:
            self._open(clause, front, trailing)
        if _is_lasting(clause):
            return
        if trailing:
            self._add_trailing(clause)
        timeless = clause.time is None and clause.modal is None and not clause.negated
        if timeless and self._dice.chance(0.12):
            clause.frequency = self._dice.pick(FREQUENCIES)

    def _open(self, clause: Clause, front: str, trailing: bool) -> None:
        marked = self._settings.marked
        if _is_lasting(clause) or not (marked or trailing):
            raise Again
        if front == "time":
            clause.time = self._time(clause)
        else:
            if clause.verb.local or clause.state is not None:
                raise Again
            clause.place = self._phrases.place()
        clause.front = front
        clause.english_front = front if marked else ""

    def _add_trailing(self, clause: Clause) -> None:
        dice, verb = self._dice, clause.verb
        if clause.time is None and dice.chance(0.2):
            clause.time = self._time(clause)
        if verb.manner and not clause.is_question and dice.chance(0.25):
            clause.manner = dice.pick(MANNERS[verb.manner])
        elif clause.place is None and not self._is_placed(clause) and dice.chance(0.15):
            clause.place = self._phrases.place()

    def _is_placed(self, clause: Clause) -> bool:
        return clause.verb.local or clause.negated or clause.state is not None

    def _time(self, clause: Clause) -> Adverb:
        if clause.modal is not None:
            return self._dice.pick((TODAY, TOMORROW))
        if clause.tense == "past":
            return self._dice.pick((TODAY, YESTERDAY))
        return self._dice.pick((TODAY, NOW) if clause.tense == "present" else (TODAY,))


def _is_lasting(clause: Clause) -> bool:
    """Whether the clause describes a lasting state: no "today", no "often"."""
    return clause.verb.stative or (clause.state is not None and not clause.state.passing)
