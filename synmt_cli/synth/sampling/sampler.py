"""Draws sentences: a plan, then the clauses, then a check of the result.

A plan is loose, so the finished sentence is held against it. A sentence that does not show the
phenomenon it is built around, shows one that was not chosen, or has another depth is drawn again.
"""

from synmt_cli.synth.description import MeaningDescription, describe
from synmt_cli.synth.meaning import Clause
from synmt_cli.synth.sampling.clauses import Clauses
from synmt_cli.synth.sampling.dice import Again, Dice
from synmt_cli.synth.sampling.plan import SentencePlan, draw_depth, draw_plan
from synmt_cli.synth.settings import SynthSettings

TRIES = 10_000


class Sampler:
    """Draws meanings: the same settings and seed give the same sentences in the same order."""

    def __init__(self, settings: SynthSettings, seed: int) -> None:
        self._settings = settings
        self._dice = Dice(seed)
        self._leads = settings.leads()

    def draw(self) -> tuple[Clause, MeaningDescription]:
        """One sentence and its description."""
        settings, dice = self._settings, self._dice
        # Outside the loop, so that a phenomenon that is hard to draw keeps the share of its weight.
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
        if description.depth != plan.depth:
            return False
        shown = set(description.phenomena)
        if plan.lead == "plain":
            return shown <= {"plain", "relative"}
        return plan.lead in shown and shown <= self._settings.weights.keys()
