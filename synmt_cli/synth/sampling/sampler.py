"""Draws sentences: a plan, then the clauses, then a check of the result.

A plan is loose, so the finished sentence is checked against it. A sentence that does not show the
phenomenon it is built around, shows one that was not chosen, or has another depth is drawn again.
"""

from collections.abc import Iterator

from synmt_cli.errors import UsageError
from synmt_cli.synth.description import MeaningDescription, describe
from synmt_cli.synth.meaning import Clause
from synmt_cli.synth.sampling.clauses import Clauses
from synmt_cli.synth.sampling.dice import Again, Dice
from synmt_cli.synth.sampling.plan import SentencePlan, draw_depth, draw_plan
from synmt_cli.synth.settings import SynthSettings

TRIES = 10_000


def meanings(settings: SynthSettings, seed: int) -> Iterator[tuple[Clause, MeaningDescription]]:
    """Yields sentences and their descriptions, always the same for the same settings and seed.

    Raises UsageError where phenomena exclude each other and --mix asks for nearly all of them.
    """
    dice, leads = Dice(seed), settings.leads()
    while True:
        # Outside the loop, so that a phenomenon that is hard to draw keeps the share of its weight.
        lead = dice.weighted(leads)
        depth = draw_depth(settings, dice, lead)
        for _ in range(TRIES):
            plan = draw_plan(settings, dice, lead, depth)
            try:
                clause = Clauses(settings, dice, plan).main()
            except Again:
                continue
            description = describe(clause)
            if _fulfils(description, plan, settings):
                yield clause, description
                break
        else:
            asked = f"--mix {settings.mix:g} with these --phenomena"
            found = f"no sentence around {lead} of depth {depth} in {TRIES:,} tries"
            raise UsageError(f"{asked}: {found}; take a smaller --mix")


def _fulfils(description: MeaningDescription, plan: SentencePlan, settings: SynthSettings) -> bool:
    if description.depth != plan.depth:
        return False
    shown = set(description.phenomena)
    if plan.lead == "plain":
        return shown <= {"plain", "relative"}
    return plan.lead in shown and shown <= settings.weights.keys()
