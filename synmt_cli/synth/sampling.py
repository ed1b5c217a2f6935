"""Draws sentences: a plan of what is to be in it, then its clauses, then a look at the result.

A plan is drawn loosely and the finished sentence is held against it: what does not show what it
is built around, shows what was not chosen, or is not exactly as deep, is drawn again.
"""

from __future__ import annotations

from synmt_cli.synth.clauses import Clauses
from synmt_cli.synth.description import MeaningDescription, describe
from synmt_cli.synth.dice import Again, Dice
from synmt_cli.synth.meaning import Clause
from synmt_cli.synth.plan import SentencePlan, draw_depth, draw_plan
from synmt_cli.synth.settings import SynthSettings

TRIES = 10_000


class Sampler:
    """Draws meanings. The same settings and seed draw the same, sentence by sentence."""

    def __init__(self, settings: SynthSettings, seed: int) -> None:
        self._settings = settings
        self._dice = Dice(seed)
        self._leads = settings.leads()

    def draw(self) -> tuple[Clause, MeaningDescription]:
        """One sentence, and what it holds."""
        settings, dice = self._settings, self._dice
        # Outside the loop: what is hard to draw stays as frequent as its weight says.
        lead = dice.weighted(self._leads)
        depth = draw_depth(settings, dice, lead)
        for _ in range(TRIES):
            plan = draw_plan(settings, dice, lead, depth)
            try:
                clause = Clauses(settings, dice, plan).main()
            except Again:
                continue
            description = describe(clause)
            if self._fulfils(plan, description):
                return clause, description
        raise AssertionError(f"no sentence in {TRIES} tries: {lead}, depth {depth}")

    def _fulfils(self, plan: SentencePlan, description: MeaningDescription) -> bool:
        found = set(description.phenomena)
        if plan.lead == "plain":
            return found <= {"plain", "relative"} and description.depth == plan.depth
        return (
            plan.lead in found
            and found <= self._settings.weights.keys()
            and description.depth == plan.depth
        )
