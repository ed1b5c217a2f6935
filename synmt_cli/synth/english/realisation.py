"""Says a meaning in English, as tokens of a UD tree.

Subject, verb and complement keep their order; whatever opens the sentence before the subject
is followed by a comma. A verb with a preposition leaves it where it was when its complement moves
to the front (stranding): as in UD, the preposition depends on the moved word, and the arc crosses
the verb's.
"""

from synmt_cli.synth.english import forms
from synmt_cli.synth.lexicon.entries import PERSON, EnglishVerb, Preposition
from synmt_cli.synth.meaning import Clause, Determiner, Kind, Phrase
from synmt_cli.synth.tokens import MadeSentence, MadeToken, put, sentence
from synmt_cli.synth.words import COMMA, PERIOD, QUESTION_MARK, MadeWord, adposition, subordinator

HAVE, DO = EnglishVerb("have", "had", "had"), EnglishVerb("do", "did", "done")


def realise(clause: Clause) -> MadeSentence:
    """A main clause as a sentence."""
    out: list[MadeToken] = []
    top = _clause(out, clause, "root", None)
    put(out, QUESTION_MARK if clause.is_question else PERIOD, "punct", top)
    return sentence(out)


def _clause(
    out: list[MadeToken], clause: Clause, deprel: str, head: MadeToken | None, mark: str = ""
) -> MadeToken:
    """Appends a clause; returns the token that is its head."""
    auxiliaries, verb_word = _verb_words(clause)
    verb = top = MadeToken(verb_word, deprel, head)
    if clause.state is not None:
        top = MadeToken(forms.adjective(clause.state), deprel, head)
        verb.deprel, verb.head = "cop", top
    if mark:
        put(out, subordinator(mark), "mark", top)
    _put_front(out, clause, top)
    moved = _put_moved(out, clause, top)
    first, rest = auxiliaries[:1], auxiliaries[1:]
    if clause.is_question:
        put(out, first[0], "aux", top)
        first = []
    if clause.subject.kind is not Kind.RELATIVE:
        _put_phrase(out, clause.subject, "Nom", "nsubj", top)
    _put_predicate(out, clause, top, verb, first + rest)
    _put_complements(out, clause, top, moved)
    _put_adverbials(out, clause, top)
    return top


def _verb_words(clause: Clause) -> tuple[list[MadeWord], MadeWord]:
    """The auxiliaries in order, and the verb itself."""
    verb, agreement = clause.verb.english, clause.subject.agreement
    upos = "VERB" if clause.state is None else "AUX"
    if clause.modal is not None:
        return [forms.modal(clause.modal.english)], forms.infinitive(verb.lemma, upos)
    if clause.tense == "perfect":
        have = forms.finite(HAVE.lemma, HAVE.past, "present", *agreement, "AUX")
        return [have], forms.participle(verb, upos)
    if (clause.negated or clause.is_question) and clause.state is None:
        do = forms.finite(DO.lemma, DO.past, clause.tense, *agreement, "AUX")
        return [do], forms.infinitive(verb.lemma, upos)
    return [], forms.finite(verb.lemma, verb.past, clause.tense, *agreement, upos)


def _put_front(out: list[MadeToken], clause: Clause, top: MadeToken) -> None:
    match clause.english_front:
        case "time":
            _put_time(out, clause, top)
        case "place":
            _put_place(out, clause, top)
        case "complement":
            _put_complement(out, clause, top)
        case "circumstance":
            put(out, COMMA, "punct", _put_circumstance(out, clause, top))
            return
        case _:
            return
    put(out, COMMA, "punct", top)


def _put_moved(out: list[MadeToken], clause: Clause, top: MadeToken) -> MadeToken | None:
    """Appends the relative or interrogative pronoun; returns it if it is the complement."""
    if clause.subject.kind is Kind.RELATIVE:
        put(out, _relative(clause.subject, True), "nsubj", top)
        return None
    phrase = clause.complement
    if phrase is None or not phrase.moved:
        return None
    if phrase.kind is Kind.RELATIVE:
        word = _relative(phrase, False)
    else:
        word = forms.WHO if phrase.asks_who else forms.WHAT
    return put(out, word, "obl" if clause.verb.english.preposition else "obj", top)


def _relative(phrase: Phrase, subject: bool) -> MadeWord:
    assert phrase.noun is not None
    is_who = subject and phrase.noun.sort == PERSON
    return forms.WHO_RELATIVE if is_who else forms.THAT_RELATIVE


def _put_predicate(
    out: list[MadeToken],
    clause: Clause,
    top: MadeToken,
    verb: MadeToken,
    auxiliaries: list[MadeWord],
) -> None:
    """Appends auxiliaries, `not`, an adverb of frequency and the verb (or be and adjective)."""
    words = [MadeToken(word, "aux", top) for word in auxiliaries] + [verb]
    middle = []
    if clause.negated:
        middle.append(MadeToken(forms.NOT, "advmod", top))
    if clause.frequency is not None:
        middle.append(MadeToken(forms.adverb(clause.frequency), "advmod", top))
    asked = clause.is_question  # its first auxiliary stands before the subject
    at = 0 if asked or (len(words) == 1 and clause.state is None) else 1
    words[at:at] = middle
    if clause.negated and words[0].form == "can":
        words[0].tight = True
    out.extend(words)
    if top is not verb:
        out.append(top)


def _put_complements(
    out: list[MadeToken], clause: Clause, top: MadeToken, moved: MadeToken | None
) -> None:
    verb = clause.verb.english
    particle = MadeToken(adposition(verb.particle), "compound:prt", top)
    if verb.particle and not clause.apart:
        out.append(particle)
    if clause.recipient is not None:
        _put_phrase(out, clause.recipient, "Acc", "iobj", top)
    if moved is not None:
        if verb.preposition:
            put(out, adposition(verb.preposition), "case", moved)
    elif clause.english_front != "complement":
        _put_complement(out, clause, top)
    if verb.particle and clause.apart:
        out.append(particle)


def _put_complement(out: list[MadeToken], clause: Clause, top: MadeToken) -> None:
    phrase, verb = clause.complement, clause.verb.english
    if phrase is None:
        return
    if not verb.preposition:
        _put_phrase(out, phrase, "Acc", "obj", top)
        return
    case = put(out, adposition(verb.preposition), "case", None)
    case.head = _put_phrase(out, phrase, "Acc", "obl", top)


def _put_adverbials(out: list[MadeToken], clause: Clause, top: MadeToken) -> None:
    front = clause.english_front
    if clause.manner is not None:
        put(out, forms.adverb(clause.manner), "advmod", top)
    if front != "place":
        _put_place(out, clause, top)
    if front != "time":
        _put_time(out, clause, top)
    if clause.embedded is not None:
        conjunction, embedded = clause.embedded
        _clause(out, embedded, "ccomp", top, conjunction.english)
    if front != "circumstance" and clause.circumstance is not None:
        _put_circumstance(out, clause, top)


def _put_time(out: list[MadeToken], clause: Clause, top: MadeToken) -> None:
    if clause.time is not None:
        deprel = "obl:unmarked" if clause.time.noun else "advmod"
        put(out, forms.adverb(clause.time), deprel, top)


def _put_place(out: list[MadeToken], clause: Clause, top: MadeToken) -> None:
    if clause.place is not None:
        _put_prepositional(out, clause.place, "obl", top)


def _put_circumstance(out: list[MadeToken], clause: Clause, top: MadeToken) -> MadeToken:
    assert clause.circumstance is not None
    conjunction, circumstance = clause.circumstance
    return _clause(out, circumstance, "advcl", top, conjunction.english)


def _put_prepositional(
    out: list[MadeToken], place: tuple[Preposition, Phrase], deprel: str, head: MadeToken
) -> None:
    preposition, phrase = place
    case = put(out, adposition(preposition.english), "case", None)
    case.head = _put_phrase(out, phrase, "Acc", deprel, head)


def _put_phrase(
    out: list[MadeToken], phrase: Phrase, case: str, deprel: str, head: MadeToken
) -> MadeToken:
    if phrase.kind is Kind.PRONOUN:
        return put(out, forms.pronoun(phrase.pronoun, case), deprel, head)
    if phrase.kind is Kind.REFLEXIVE:
        return put(out, forms.reflexive(phrase.pronoun), deprel, head)
    assert phrase.noun is not None
    noun = MadeToken(forms.noun(phrase.noun, phrase.number), deprel, head)
    if phrase.kind is Kind.NAME:
        out.append(noun)
        return noun
    adjective = None if phrase.adjective is None else forms.adjective(phrase.adjective)
    _put_determiner(out, phrase, noun, adjective.form if adjective else noun.form)
    if adjective is not None:
        put(out, adjective, "amod", noun)
    out.append(noun)
    if phrase.attribute is not None:
        _put_prepositional(out, phrase.attribute, "nmod", noun)
    if phrase.relative is not None:
        _clause(out, phrase.relative, "acl:relcl", noun)
    return noun


def _put_determiner(out: list[MadeToken], phrase: Phrase, noun: MadeToken, following: str) -> None:
    if phrase.determiner is Determiner.POSSESSIVE:
        assert phrase.possessor is not None
        put(out, forms.pronoun(phrase.possessor.pronoun, "Gen"), "nmod:poss", noun)
        return
    word = forms.article(phrase.determiner, phrase.number, following)
    if word is not None:
        put(out, word, phrase.determiner.deprel, noun)
