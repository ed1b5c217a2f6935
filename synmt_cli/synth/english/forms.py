"""English words in every form the grammar needs, with their UD features."""

from functools import cache

from synmt_cli.synth import words
from synmt_cli.synth.lexicon.entries import Adjective, Adverb, EnglishVerb, Noun, Pronoun, with_s
from synmt_cli.synth.meaning import Determiner
from synmt_cli.synth.words import MadeWord, word

CASES = {"Nom": 0, "Acc": 1, "Gen": 3}
NOT = word("not", "not", "PART", Polarity="Neg")
WHO_RELATIVE = word("who", "who", "PRON", PronType="Rel")
THAT_RELATIVE = word("that", "that", "PRON", PronType="Rel")
WHO, WHAT = (word(form, form, "PRON", PronType="Int") for form in ("who", "what"))
_IRREGULAR = {  # verb: (first person singular, third, others) in present and past
    "be": (("am", "is", "are"), ("was", "was", "were")),
    "have": (("have", "has", "have"), ("had", "had", "had")),
    "do": (("do", "does", "do"), ("did", "did", "did")),
}
_DETERMINERS = {
    (Determiner.DEFINITE, "Sing"): word("the", "the", "DET", Definite="Def", PronType="Art"),
    (Determiner.DEFINITE, "Plur"): word("the", "the", "DET", Definite="Def", PronType="Art"),
    (Determiner.INDEFINITE, "Sing"): word("a", "a", "DET", Definite="Ind", PronType="Art"),
    (Determiner.THIS, "Sing"): word("this", "this", "DET", Number="Sing", PronType="Dem"),
    (Determiner.THIS, "Plur"): word("these", "this", "DET", Number="Plur", PronType="Dem"),
    (Determiner.EVERY, "Sing"): word("every", "every", "DET", PronType="Tot"),
    (Determiner.SOME, "Plur"): word("some", "some", "DET", PronType="Ind"),
    (Determiner.TWO, "Plur"): word("two", "two", "NUM", NumType="Card"),
    (Determiner.THREE, "Plur"): word("three", "three", "NUM", NumType="Card"),
}
AN = word("an", "a", "DET", Definite="Ind", PronType="Art")


@cache
def noun(entry: Noun, number: str) -> MadeWord:
    """A noun or a name."""
    upos = "NOUN" if entry.english[1] else "PROPN"
    return word(entry.english[number == "Plur"], entry.english[0], upos, Number=number)


@cache
def adjective(entry: Adjective) -> MadeWord:
    """An adjective, which has one form."""
    return word(entry.english, entry.english, "ADJ", Degree="Pos")


def article(kind: Determiner, number: str, following: str) -> MadeWord | None:
    """The determiner before the word `following`; an indefinite plural has none."""
    if kind is Determiner.INDEFINITE and number == "Sing" and following[0] in "aeiou":
        return AN
    return _DETERMINERS.get((kind, number))


@cache
def pronoun(entry: Pronoun, case: str) -> MadeWord:
    """A personal pronoun (Nom, Acc) or a possessive one (Gen)."""
    form, nominative = entry.english[CASES[case]], entry.english[0]
    if case == "Gen":
        return words.personal(form, form, entry, Case=case, Poss="Yes")
    return words.personal(form, nominative, entry, Case=case)


@cache
def reflexive(entry: Pronoun) -> MadeWord:
    """Myself, herself, themselves, ..."""
    form = entry.english[2]
    return words.personal(form, form, entry, Case="Acc", Reflex="Yes")


@cache
def finite(lemma: str, past_form: str, tense: str, person: int, number: str, upos: str) -> MadeWord:
    """A finite verb. past_form: its past, if that is the same for every person."""
    is_third = person == 3 and number == "Sing"
    if lemma in _IRREGULAR:
        forms = _IRREGULAR[lemma][tense == "past"]
        form = forms[1] if is_third else forms[0] if number == "Sing" else forms[2]
    elif tense == "past":
        form = past_form
    else:
        form = with_s(lemma) if is_third else lemma
    return words.finite(form, lemma, upos, (person, number), tense == "past")


@cache
def infinitive(lemma: str, upos: str) -> MadeWord:
    """A verb without an ending."""
    return word(lemma, lemma, upos, VerbForm="Inf")


@cache
def participle(verb: EnglishVerb, upos: str) -> MadeWord:
    """A past participle."""
    return word(verb.participle, verb.lemma, upos, Tense="Past", VerbForm="Part")


@cache
def modal(form: str) -> MadeWord:
    """A modal, or the future's `will`."""
    return word(form, form, "AUX", VerbForm="Fin")


@cache
def adverb(entry: Adverb) -> MadeWord:
    """An adverb; `today` and the like are nouns in UD."""
    if entry.noun:
        return word(entry.english, entry.english, "NOUN", Number="Sing")
    return word(entry.english, entry.english, "ADV")
