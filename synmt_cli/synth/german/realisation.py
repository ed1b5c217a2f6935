"""Says a meaning in German, as tokens of a UD tree.

A main clause is one field, the finite verb, the middle, the second part of the verb (participle,
infinitive or separated prefix), then clauses. In a subordinate clause the finite verb comes last,
with its prefix joined to it. The middle is subject, pronouns, adverbs of time, recipient, object,
`nicht`, manner, place, prepositional complement or predicate.
"""

from dataclasses import dataclass

from synmt_cli.synth.german import forms
from synmt_cli.synth.lexicon.entries import Conjunction
from synmt_cli.synth.lexicon.verbs import BE
from synmt_cli.synth.meaning import Clause, Determiner, Kind, Phrase
from synmt_cli.synth.tokens import MadeSentence, MadeToken, put, sentence
from synmt_cli.synth.words import COMMA, PERIOD, QUESTION_MARK, adposition, subordinator


def realise(clause: Clause) -> MadeSentence:
    """A main clause as a sentence."""
    out: list[MadeToken] = []
    verb = _verb_tokens(clause, "root", None, final=False)
    _put_field(out, clause, verb.top)
    out.append(verb.finite)
    inverted = bool(clause.front) or clause.is_question
    complement = _put_middle(out, clause, verb.top, with_subject=inverted)
    out.extend(verb.others)
    _put_after(out, clause, verb.top, complement)
    put(out, QUESTION_MARK if clause.is_question else PERIOD, "punct", verb.top)
    return sentence(out)


@dataclass(slots=True)
class _VerbTokens:
    """The parts of a clause's verb, before they are put in place.

    top: the head of the clause, the verb itself or its predicate. others: a predicate, a
    participle or infinitive, or a separated prefix, in order.
    """

    top: MadeToken
    finite: MadeToken
    others: list[MadeToken]


def _verb_tokens(clause: Clause, deprel: str, head: MadeToken | None, final: bool) -> _VerbTokens:
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
        return _VerbTokens(top, MadeToken(auxiliary, "aux", top), others)
    if verb.prefix and not final:
        others.append(MadeToken(adposition(verb.prefix), "compound:prt", top))
    return _VerbTokens(top, main, others)


def _put_subordinate(
    out: list[MadeToken],
    clause: Clause,
    deprel: str,
    head: MadeToken,
    conjunction: Conjunction | None = None,
) -> None:
    """Appends a clause with the verb at its end, between commas."""
    verb = _verb_tokens(clause, deprel, head, final=True)
    top = verb.top
    put(out, COMMA, "punct", top)
    if conjunction is not None:
        put(out, subordinator(conjunction.german), "mark", top)
    if clause.subject.kind is Kind.RELATIVE:
        gap = clause.subject
        put(out, forms.relative("Nom", gap.gender, gap.number), "nsubj", top)
    else:
        _put_moved(out, clause, top)
    has_subject = clause.subject.kind is not Kind.RELATIVE
    complement = _put_middle(out, clause, top, with_subject=has_subject)
    out += verb.others
    out.append(verb.finite)
    _put_after(out, clause, top, complement)
    put(out, COMMA, "punct", top)


def _put_field(out: list[MadeToken], clause: Clause, top: MadeToken) -> None:
    """Appends the field before the finite verb of a main clause."""
    match clause.front:
        case "complement":
            _put_complement(out, clause, top)
        case "time" | "place" | "circumstance":
            _put_part(out, clause, clause.front, top)
        case _ if clause.is_question:
            _put_moved(out, clause, top)
        case _:
            _put_part(out, clause, "subject", top)
    if clause.front == "circumstance":
        del out[0]  # its first comma would open the sentence


def _put_moved(out: list[MadeToken], clause: Clause, top: MadeToken) -> None:
    """Appends the relative or interrogative pronoun that is the complement, if there is one."""
    phrase, verb = clause.complement, clause.verb.german
    if phrase is None or not phrase.moved:
        return
    is_question = phrase.kind is Kind.QUESTION
    of_person = is_question and phrase.asks_who
    if is_question and not of_person and verb.preposition:
        put(out, forms.interrogative_adverb(verb.preposition), "advmod", top)
        return
    case = put(out, adposition(verb.preposition), "case", None) if verb.preposition else None
    if is_question:
        word = forms.interrogative(verb.case, of_person)
    else:
        word = forms.relative(verb.case, phrase.gender, phrase.number)
    token = put(out, word, _complement_deprel(clause), top)
    if case is not None:
        case.head = token


def _complement_deprel(clause: Clause) -> str:
    verb = clause.verb.german
    if verb.preposition:
        return "obl"
    return "obj" if verb.case == "Acc" else "obl:arg"


def _put_middle(
    out: list[MadeToken], clause: Clause, top: MadeToken, with_subject: bool
) -> MadeToken | None:
    """Appends the words between the two parts of the verb; returns the complement's noun."""
    verb, phrase = clause.verb.german, clause.complement
    here = clause.front != "complement" and phrase is not None and not phrase.moved
    light = here and _is_light(phrase) and not verb.preposition
    _put_opening(out, clause, top, with_subject, light)
    token = None
    if here and not light and not verb.preposition:
        token = _put_complement(out, clause, top)
    if clause.negated and not _is_denied(clause):
        put(out, forms.NOT, "advmod", top)
    if clause.manner is not None:
        put(out, forms.adverb(clause.manner), "advmod", top)
    if clause.front != "place":
        _put_part(out, clause, "place", top)
    return _put_complement(out, clause, top) if here and verb.preposition else token


def _put_opening(
    out: list[MadeToken], clause: Clause, top: MadeToken, with_subject: bool, light_complement: bool
) -> None:
    """Appends subject, pronouns, adverbs of time and recipient.

    A subject that is not a pronoun comes after the other pronouns ("heute wäscht sich der
    Mann"), and after adverbs of time if it bears a relative clause.
    """
    subject = clause.subject
    if with_subject and subject.kind is Kind.PRONOUN:
        _put_part(out, clause, "subject", top)
        with_subject = False
    if clause.verb.german.reflexive:
        put(out, forms.reflexive(subject.pronoun, "Acc"), "expl:pv", top)
    if light_complement:
        _put_complement(out, clause, top)
    parts = [part for part in ("time", "frequency") if part != clause.front]
    if with_subject:
        parts.insert(0 if subject.relative is None else len(parts), "subject")
    parts.insert(0 if _is_light(clause.recipient) else len(parts), "recipient")
    for part in parts:
        _put_part(out, clause, part, top)


def _is_light(phrase: Phrase | None) -> bool:
    return phrase is not None and phrase.kind in (Kind.PRONOUN, Kind.REFLEXIVE)


def _is_denied(clause: Clause) -> bool:
    """Whether negation shows as `kein` on the object."""
    phrase = clause.complement
    return (
        clause.negated
        and phrase is not None
        and phrase.kind is Kind.NOUN
        and not clause.verb.german.preposition
        and phrase.determiner is Determiner.INDEFINITE
    )


def _put_part(out: list[MadeToken], clause: Clause, part: str, top: MadeToken) -> None:
    """Appends the part of that name, if there is one."""
    match part:
        case "subject":
            _put_phrase(out, clause.subject, "Nom", "nsubj", top)
        case "time" if clause.time is not None:
            put(out, forms.adverb(clause.time), "advmod", top)
        case "frequency" if clause.frequency is not None:
            put(out, forms.adverb(clause.frequency), "advmod", top)
        case "recipient" if clause.recipient is not None:
            _put_phrase(out, clause.recipient, "Dat", "obl:arg", top)
        case "place" if clause.place is not None:
            preposition, phrase = clause.place
            _put_prepositional(out, preposition.german, phrase, "obl", top)
        case "embedded" if clause.embedded is not None:
            conjunction, embedded = clause.embedded
            _put_subordinate(out, embedded, "ccomp", top, conjunction)
        case "circumstance" if clause.circumstance is not None:
            conjunction, circumstance = clause.circumstance
            _put_subordinate(out, circumstance, "advcl", top, conjunction)


def _put_after(
    out: list[MadeToken], clause: Clause, top: MadeToken, complement: MadeToken | None
) -> None:
    """Appends the clauses that follow the verb."""
    if clause.extraposed:
        assert clause.complement is not None
        assert clause.complement.relative is not None
        assert complement is not None
        _put_subordinate(out, clause.complement.relative, "acl:relcl", complement)
    for part in ("embedded", "circumstance"):
        if part != clause.front:
            _put_part(out, clause, part, top)


def _put_complement(out: list[MadeToken], clause: Clause, top: MadeToken) -> MadeToken:
    phrase, verb = clause.complement, clause.verb.german
    assert phrase is not None
    deprel, denied = _complement_deprel(clause), _is_denied(clause)
    relative = not clause.extraposed
    if verb.preposition:
        return _put_prepositional(out, verb.preposition, phrase, deprel, top, verb.case, relative)
    return _put_phrase(out, phrase, verb.case, deprel, top, denied, relative)


def _put_prepositional(
    out: list[MadeToken],
    preposition: str,
    phrase: Phrase,
    deprel: str,
    head: MadeToken,
    case: str = "Dat",
    relative: bool = True,
) -> MadeToken:
    token = put(out, adposition(preposition), "case", None)
    at = len(out)
    token.head = noun = _put_phrase(out, phrase, case, deprel, head, relative=relative)
    # "im Haus", but "in dem Haus, das ...": not fused where a relative clause restricts the noun.
    if phrase.kind is Kind.NOUN and phrase.relative is None:
        token.fused = forms.FUSED.get((preposition, out[at].form), "")
    return noun


def _put_phrase(
    out: list[MadeToken],
    phrase: Phrase,
    case: str,
    deprel: str,
    head: MadeToken,
    denied: bool = False,
    relative: bool = True,
) -> MadeToken:
    """Appends a phrase. relative: with its relative clause. denied: with `kein` for `ein`."""
    if phrase.kind is Kind.PRONOUN:
        return put(out, forms.pronoun(phrase.pronoun, case), deprel, head)
    if phrase.kind is Kind.REFLEXIVE:
        return put(out, forms.reflexive(phrase.pronoun, case), deprel, head)
    assert phrase.noun is not None
    noun = MadeToken(forms.noun(phrase.noun, case, phrase.number), deprel, head)
    if phrase.kind is Kind.NOUN:
        _put_determiner(out, phrase, case, noun, denied)
    if phrase.adjective is not None:
        agreement = (case, phrase.gender, phrase.number)
        word = forms.adjective(phrase.adjective, phrase.determiner, denied, *agreement)
        put(out, word, "amod", noun)
    out.append(noun)
    if phrase.attribute is not None:
        preposition, attribute = phrase.attribute
        _put_prepositional(out, preposition.german, attribute, "nmod", noun)
    if phrase.relative is not None and relative:
        _put_subordinate(out, phrase.relative, "acl:relcl", noun)
    return noun


def _put_determiner(
    out: list[MadeToken], phrase: Phrase, case: str, noun: MadeToken, denied: bool
) -> None:
    agreement = (case, phrase.gender, phrase.number)
    if phrase.determiner is Determiner.POSSESSIVE:
        possessor = phrase.possessor
        assert possessor is not None
        stem = forms.possessive_stem(possessor)
        put(out, forms.possessive(stem, possessor.pronoun, *agreement), "det:poss", noun)
        return
    word = forms.determiner(phrase.determiner, denied, *agreement)
    if word is not None:
        put(out, word, phrase.determiner.deprel, noun)
