"""What a drawn sentence shows: its phenomena, its depth, and what its German leaves open."""

from collections.abc import Iterator
from dataclasses import dataclass

from synmt_cli.synth.german.forms import marks_case
from synmt_cli.synth.meaning import Clause, Kind, Phrase
from synmt_cli.synth.settings import PHENOMENA


@dataclass(frozen=True, slots=True)
class MeaningDescription:
    """What a sentence shows. phenomena: in the order of PHENOMENA, `plain` if there are none.

    depth: how deep relative clauses are nested. ambiguous: where neither German case nor
    agreement tells subject from object: subject-first, object-first, relative. cue: what
    identifies the object of an object-first sentence: case, agreement, sense or none.
    """

    phenomena: tuple[str, ...]
    depth: int
    ambiguous: tuple[str, ...] = ()
    cue: str = ""

    def comments(self) -> str:
        """CoNLL-U comment lines."""
        lines = [
            f"# synth_phenomena = {','.join(self.phenomena)}",
            f"# synth_depth = {self.depth}",
        ]
        if self.ambiguous:
            lines.append(f"# synth_ambiguous = {','.join(self.ambiguous)}")
        if self.cue:
            lines.append(f"# synth_cue = {self.cue}")
        return "\n".join(lines) + "\n"


def describe(clause: Clause) -> MeaningDescription:
    """The description of the sentence that a main clause makes."""
    shown: set[str] = set()
    ambiguous = set()
    for part in clauses(clause):
        shown |= _phenomena_of(part)
        if is_relative(part) and cue(part) in ("sense", "none"):
            ambiguous.add("relative")
    main_cue = cue(clause)
    if clause.front == "complement":
        is_marked = main_cue in ("case", "agreement")
        shown.add("object-first" if is_marked else "object-first-ambiguous")
    if main_cue in ("sense", "none"):
        ambiguous.add("object-first" if clause.front == "complement" else "subject-first")
    return MeaningDescription(
        phenomena=tuple(name for name in PHENOMENA if name in shown) or ("plain",),
        depth=_depth(clause),
        ambiguous=tuple(sorted(ambiguous)),
        cue=main_cue if clause.front == "complement" else "",
    )


def clauses(clause: Clause) -> Iterator[Clause]:
    """The clause and every clause in it."""
    yield clause
    for phrase in phrases(clause):
        if phrase.relative is not None:
            yield from clauses(phrase.relative)
    for inner in (clause.embedded, clause.circumstance):
        if inner is not None:
            yield from clauses(inner[1])


def phrases(clause: Clause) -> Iterator[Phrase]:
    """The phrases of a clause and their attributes, without those of inner clauses."""
    place = None if clause.place is None else clause.place[1]
    for phrase in (clause.subject, clause.recipient, clause.complement, place):
        if phrase is not None:
            yield phrase
            if phrase.attribute is not None:
                yield phrase.attribute[1]


def is_relative(clause: Clause) -> bool:
    """Whether its subject or complement is a relative pronoun."""
    complement = clause.complement
    return clause.subject.kind is Kind.RELATIVE or (
        complement is not None and complement.kind is Kind.RELATIVE
    )


def _phenomena_of(clause: Clause) -> set[str]:
    complement, attribute = clause.complement, clause.subject.attribute
    moved = complement is not None and complement.moved
    facts = {
        "fronting": clause.front in ("time", "place", "circumstance"),
        "subordinate": bool(clause.embedded or clause.circumstance),
        "reflexive": complement is not None and complement.kind is Kind.REFLEXIVE,
        "relative": is_relative(clause),
        "stranding": moved and bool(clause.verb.english.preposition),
        "agreement": attribute is not None and attribute[1].number != clause.subject.number,
        "perfect": clause.tense == "perfect",
        "modal": clause.modal is not None,
        "negation": clause.negated,
        "adjective": any(phrase.adjective is not None for phrase in phrases(clause)),
    }
    return {name for name, holds in facts.items() if holds} | clause.verb.kinds


def _depth(clause: Clause) -> int:
    inner = [phrase.relative for phrase in phrases(clause) if phrase.relative is not None]
    others = [part[1] for part in (clause.embedded, clause.circumstance) if part is not None]
    return max(
        [0, *(1 + _depth(relative) for relative in inner), *(_depth(other) for other in others)]
    )


def cue(clause: Clause) -> str:
    """The cue that tells subject from complement in German: case, agreement, sense or none.

    "" if there is nothing to tell apart: there is no complement without a preposition, or it is
    reflexive or interrogative.
    """
    subject, complement, verb = clause.subject, clause.complement, clause.verb
    if complement is None or complement.kind in (Kind.REFLEXIVE, Kind.QUESTION):
        return ""
    if verb.german.preposition or verb.german.reflexive:
        return ""
    case = verb.german.case
    if marks_case(subject, case) or marks_case(complement, case):
        return "case"
    if subject.agreement != complement.agreement:
        return "agreement"
    swapped = complement.sort & verb.subject and subject.sort & verb.complement
    return "none" if swapped else "sense"
