"""The verb of a German clause: its finite part, and what ends the clause."""

from __future__ import annotations

from dataclasses import dataclass

from synmt_cli.synth import german_forms as forms
from synmt_cli.synth.meaning import Clause
from synmt_cli.synth.tokens import MadeToken
from synmt_cli.synth.verbs import BE


@dataclass(slots=True)
class VerbTokens:
    """The parts of a clause's verb, not yet in place.

    top: the head of the clause, the verb itself or its predicate. others: a predicate, a
    participle or infinitive, or a separated prefix, in order.
    """

    top: MadeToken
    finite: MadeToken
    others: list[MadeToken]


def verb_tokens(clause: Clause, deprel: str, head: MadeToken | None, final: bool) -> VerbTokens:
    """The tokens of the verb. final: the finite verb comes last, its prefix joined."""
    verb = clause.verb.german
    agreement = clause.subject.agreement
    upos = "VERB" if clause.state is None else "AUX"
    others: list[MadeToken] = []
    if clause.modal is not None:
        auxiliary = forms.modal(clause.modal, *agreement)
        main = MadeToken(forms.infinitive(verb, upos), deprel, head)
    elif clause.tense == "perfect":
        helper = BE.german if verb.auxiliary == "sein" else forms.HAVE
        auxiliary = forms.finite(helper, "present", *agreement, "AUX", "")
        main = MadeToken(forms.participle(verb, upos), deprel, head)
    else:
        auxiliary = None
        prefix = verb.prefix if final else ""
        main = MadeToken(forms.finite(verb, clause.tense, *agreement, upos, prefix), deprel, head)
    top = main
    if clause.state is not None:
        top = MadeToken(forms.predicate(clause.state), deprel, head)
        main.deprel, main.head = "cop", top
        others.append(top)
    if auxiliary is not None:
        others.append(main)
        return VerbTokens(top, MadeToken(auxiliary, "aux", top), others)
    if verb.prefix and not final:
        others.append(MadeToken(forms.particle(verb.prefix), "compound:prt", top))
    return VerbTokens(top, main, others)
