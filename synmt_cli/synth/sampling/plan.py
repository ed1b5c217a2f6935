"""Draws plans: what a sentence is to show, before any of its words."""

from dataclasses import dataclass, field

from synmt_cli.synth.sampling.dice import Dice
from synmt_cli.synth.settings import SynthSettings

KINDS = ("particle", "reflexive", "dative")  # phenomena that a verb itself brings
FRONTS = ("fronting", "object-first", "object-first-ambiguous", "stranding")
WITHIN = (*KINDS, "agreement", "perfect", "modal", "negation", "adjective")  # in single clauses


@dataclass(slots=True)
class SentencePlan:
    """What one sentence is to show.

    lead: the phenomenon it is built around. wishes: lead and the others. depth: how deep relative
    clauses are nested. front: what opens the main clause, one of FRONTS or "". strands: a relative
    clause strands its preposition. subordinate: embedded, circumstance or "". hosts: which clause
    is to show a phenomenon of WITHIN: main, other or relative.
    """

    lead: str
    depth: int
    wishes: frozenset[str]
    front: str = ""
    strands: bool = False
    subordinate: str = ""
    hosts: dict[str, str] = field(default_factory=dict)

    def wants(self, name: str, role: str, dice: Dice) -> bool:
        """Whether the clause of that role (a value of `hosts`, or nested) is to show `name`."""
        if role == "nested":
            return name in self.hosts and dice.chance(0.3)
        return self.hosts.get(name) == role


def draw_depth(settings: SynthSettings, dice: Dice, lead: str) -> int:
    """Draws how deep the relative clauses of a sentence are nested."""
    if lead == "relative" or settings.min_depth:
        return dice.number(max(1, settings.min_depth), settings.max_depth)
    joins = "relative" in settings.weights and lead != "plain" and dice.chance(settings.mix)
    return dice.number(1, settings.max_depth) if joins and settings.max_depth else 0


def draw_plan(settings: SynthSettings, dice: Dice, lead: str, depth: int) -> SentencePlan:
    """A plan around `lead`, joined by other phenomena by chance."""
    others = [name for name in settings.weights if lead != "plain" and name != lead]
    wishes = frozenset([lead, *(name for name in others if dice.chance(settings.mix))])
    plan = SentencePlan(lead, depth, wishes)
    plan.front = _front(dice, plan)
    plan.strands = "stranding" in wishes and plan.front != "stranding" and depth > 0
    if "subordinate" in wishes and plan.front != "stranding":
        embeds = plan.front in ("", "fronting") and dice.chance(0.5)
        plan.subordinate = "embedded" if embeds else "circumstance"
    for name in WITHIN:
        if name in wishes:
            plan.hosts[name] = dice.pick(_hosts(plan, name))
    return plan


def _front(dice: Dice, plan: SentencePlan) -> str:
    fronts = [plan.lead] if plan.lead in FRONTS else [n for n in FRONTS if n in plan.wishes]
    front = dice.pick(fronts) if fronts else ""
    if front != "stranding":
        return front
    asks = plan.lead != "subordinate" and (plan.depth == 0 or dice.chance(0.4))
    return "stranding" if asks else ""


def _hosts(plan: SentencePlan, name: str) -> list[str]:
    hosts = []
    if plan.subordinate != "embedded" or name not in ("particle", "dative"):
        hosts.append("main")
    if plan.subordinate:
        hosts.append("other")
    if plan.depth:
        hosts.append("relative")
    return hosts
