"""Says a meaning in English, as tokens of a UD tree.

Subject, verb and complement keep their order; whatever opens the sentence before the subject
is followed by a comma. A verb with a preposition leaves it where it was when its complement moves
to the front (stranding): as in UD, the preposition depends on the moved word, and the arc crosses
the verb's.
"""

from synmt_cli.synth.english import forms
from synmt_cli.synth.lexicon.entries import PERSON
from synmt_cli.synth.meaning import Clause, Determiner, Kind, Phrase
from synmt_cli.synth.tokens import MadeSentence, MadeToken, put, sentence
from synmt_cli.synth.words import COMMA, PERIOD, QUESTION_MARK, MadeWord, adposition, subordinator


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
    if clause.english_front:
        put(out, COMMA, "punct", _put_part(out, clause, clause.english_front, top))
    moved = _put_moved(out, clause, top)
    first, rest = auxiliaries[:1], auxiliaries[1:]
    if clause.is_question:
        put(out, first[0], "aux", top)
        first = []
    if clause.subject.kind is not Kind.RELATIVE:
        _put_phrase(out, clause.subject, "Nom", "nsubj", top)
    _put_predicate(out, clause, top, verb, first + rest)
    _put_complements(out, clause, top, moved)
    for part in ("manner", "place", "time", "embedded", "circumstance"):
        if part != clause.english_front:
            _put_part(out, clause, part, top)
    return top


def _verb_words(clause: Clause) -> tuple[list[MadeWord], MadeWord]:
    """The auxiliaries in order, and the verb itself."""
    verb, agreement = clause.verb.english, clause.subject.agreement
    upos = "VERB" if clause.state is None else "AUX"
    if clause.modal is not None:
        return [forms.modal(clause.modal.english)], forms.infinitive(verb.lemma, upos)
    if clause.tense == "perfect":
        have = forms.finite("have", "had", "present", *agreement, "AUX")
        return [have], forms.participle(verb, upos)
    if (clause.negated or clause.is_question) and clause.state is None:
        do = forms.finite("do", "did", clause.tense, *agreement, "AUX")
        return [do], forms.infinitive(verb.lemma, upos)
    return [], forms.finite(verb.lemma, verb.past, clause.tense, *agreement, upos)


def _put_moved(out: list[MadeToken], clause: Clause, top: MadeToken) -> MadeToken | None:
    """Appends the relative or interrogative pronoun; returns it if it is the complement."""
    if clause.subject.kind is Kind.RELATIVE:
        is_person = clause.subject.sort == PERSON
        word = forms.WHO_RELATIVE if is_person else forms.THAT_RELATIVE
        put(out, word, "nsubj", top)
        return None
    phrase = clause.complement
    if phrase is None or not phrase.moved:
        return None
    if phrase.kind is Kind.RELATIVE:
        word = forms.THAT_RELATIVE
    else:
        word = forms.WHO if phrase.asks_who else forms.WHAT
    return put(out, word, "obl" if clause.verb.english.preposition else "obj", top)


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
        _put_part(out, clause, "complement", top)
    if verb.particle and clause.apart:
        out.append(particle)


def _put_part(out: list[MadeToken], clause: Clause, part: str, top: MadeToken) -> MadeToken:
    """Appends the part of that name, if there is one; returns the head of a comma after it."""
    verb = clause.verb.english
    match part:
        case "time" if clause.time is not None:
            deprel = "obl:unmarked" if clause.time.noun else "advmod"
            put(out, forms.adverb(clause.time), deprel, top)
        case "manner" if clause.manner is not None:
            put(out, forms.adverb(clause.manner), "advmod", top)
        case "place" if clause.place is not None:
            preposition, phrase = clause.place
            _put_prepositional(out, preposition.english, phrase, "obl", top)
        case "complement" if clause.complement is not None:
            if verb.preposition:
                _put_prepositional(out, verb.preposition, clause.complement, "obl", top)
            else:
                _put_phrase(out, clause.complement, "Acc", "obj", top)
        case "embedded" if clause.embedded is not None:
            conjunction, embedded = clause.embedded
            _clause(out, embedded, "ccomp", top, conjunction.english)
        case "circumstance" if clause.circumstance is not None:
            conjunction, circumstance = clause.circumstance
            return _clause(out, circumstance, "advcl", top, conjunction.english)
    return top


def _put_prepositional(
    out: list[MadeToken], preposition: str, phrase: Phrase, deprel: str, head: MadeToken
) -> None:
    case = put(out, adposition(preposition), "case", None)
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
        preposition, attribute = phrase.attribute
        _put_prepositional(out, preposition.english, attribute, "nmod", noun)
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
