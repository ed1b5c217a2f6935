"""German words in every form the grammar needs, with their UD features.

Endings are looked up by case and by gender, which is Plur in the plural.
"""

from functools import cache

from synmt_cli.synth import words
from synmt_cli.synth.lexicon.entries import Adjective, Adverb, GermanVerb, Modal, Noun, Pronoun
from synmt_cli.synth.meaning import Determiner, Kind, Phrase
from synmt_cli.synth.words import MadeWord, word

CASES = {"Nom": 0, "Acc": 1, "Dat": 2}
COLUMNS = {"Masc": 0, "Fem": 1, "Neut": 2, "Plur": 3}
_THE = {"Nom": "der die das die", "Acc": "den die das die", "Dat": "dem der dem den"}
_DER = {"Nom": "er e es e", "Acc": "en e es e", "Dat": "em er em en"}  # dieser, jeder, einige
_EIN = {"Nom": "- e - e", "Acc": "en e - e", "Dat": "em er em en"}  # ein, kein, mein
_WEAK = {"Nom": "e e e en", "Acc": "en e e en", "Dat": "en en en en"}  # after der, dieser
_MIXED = {"Nom": "er e es en", "Acc": "en e es en", "Dat": "en en en en"}  # after ein, kein
# after einige, zwei or no determiner: the grammar uses nouns without one in the plural only
_STRONG = {"Nom": "er e es e", "Acc": "en e es e", "Dat": "em er em en"}
_RELATIVE = {**_THE, "Dat": "dem der dem denen"}
_LIKE_DER = {  # stem, lemma, PronType
    Determiner.THIS: ("dies", "dieser", "Dem"),
    Determiner.EVERY: ("jed", "jeder", "Tot"),
    Determiner.SOME: ("einig", "einige", "Ind"),
}
_WEAK_AFTER = frozenset((Determiner.DEFINITE, Determiner.THIS, Determiner.EVERY))
_STRONG_AFTER = frozenset((Determiner.SOME, Determiner.TWO, Determiner.THREE))
FUSED = {("in", "dem"): "im", ("an", "dem"): "am", ("von", "dem"): "vom"}
NOT = word("nicht", "nicht", "PART", Polarity="Neg")
HAVE = GermanVerb("haben", "hat", "hatte", "gehabt")


def _declined(
    stem: str,
    table: dict[str, str],
    lemma: str,
    upos: str,
    agreement: tuple[str, str, str],
    **features: str | int,
) -> MadeWord:
    """The stem with the table's ending. agreement: case, gender and number."""
    case, gender, number = agreement
    ending = table[case].split()[COLUMNS["Plur" if number == "Plur" else gender]].rstrip("-")
    return word(stem + ending, lemma, upos, Case=case, Gender=gender, Number=number, **features)


@cache
def noun(entry: Noun, case: str, number: str) -> MadeWord:
    """A noun or a name."""
    form = entry.german[number == "Plur" or (entry.weak and case != "Nom")]
    if number == "Plur" and case == "Dat" and form[-1] not in "ns":
        form += "n"
    upos = "NOUN" if entry.german[1] else "PROPN"
    return word(form, entry.german[0], upos, Case=case, Gender=entry.gender, Number=number)


@cache
def determiner(
    kind: Determiner, denied: bool, case: str, gender: str, number: str
) -> MadeWord | None:
    """The determiner; denied: `kein` for `ein`. None for an indefinite plural."""
    agreement = case, gender, number
    match kind:
        case Determiner.DEFINITE:
            return _declined("", _THE, "der", "DET", agreement, Definite="Def", PronType="Art")
        case Determiner.INDEFINITE if denied:
            return _declined("kein", _EIN, "kein", "DET", agreement, PronType="Neg")
        case Determiner.INDEFINITE if number == "Sing":
            return _declined("ein", _EIN, "ein", "DET", agreement, Definite="Ind", PronType="Art")
        case Determiner.THIS | Determiner.EVERY | Determiner.SOME:
            stem, lemma, pronoun_type = _LIKE_DER[kind]
            return _declined(stem, _DER, lemma, "DET", agreement, PronType=pronoun_type)
        case Determiner.TWO | Determiner.THREE:
            form = "zwei" if kind is Determiner.TWO else "drei"
            return word(form, form, "NUM", NumType="Card")
    return None


@cache
def possessive(stem: str, possessor: Pronoun, case: str, gender: str, number: str) -> MadeWord:
    """Mein, sein, ihr, unser with an ending. stem: that of `possessive_stem`."""
    features: dict[str, str | int] = {"Person": possessor.person, "Poss": "Yes", "PronType": "Prs"}
    return _declined(stem, _EIN, stem, "DET", (case, gender, number), **features)


@cache
def adjective(
    entry: Adjective, kind: Determiner, denied: bool, case: str, gender: str, number: str
) -> MadeWord:
    """An adjective before its noun: the determiner makes it weak, mixed or strong."""
    bare = kind is Determiner.INDEFINITE and number == "Plur" and not denied
    if kind in _WEAK_AFTER:
        table = _WEAK
    elif bare or kind in _STRONG_AFTER:
        table = _STRONG
    else:
        table = _MIXED
    return _declined(entry.stem, table, entry.german, "ADJ", (case, gender, number), Degree="Pos")


@cache
def predicate(entry: Adjective) -> MadeWord:
    """An adjective after `sein`, without an ending."""
    return word(entry.german, entry.german, "ADJ", Degree="Pos")


@cache
def pronoun(entry: Pronoun, case: str) -> MadeWord:
    """A personal pronoun."""
    return words.personal(entry.german[CASES[case]], entry.german[0], entry, Case=case)


@cache
def reflexive(entry: Pronoun, case: str) -> MadeWord:
    """Sich, or the personal pronoun in the first person (mich, mir, uns)."""
    form, lemma = entry.german[CASES[case]], entry.german[0]
    if entry.person == 3:
        form = lemma = "sich"
    return words.personal(form, lemma, entry, Case=case, Gender=None, Reflex="Yes")


@cache
def relative(case: str, gender: str, number: str) -> MadeWord:
    """A relative pronoun."""
    return _declined("", _RELATIVE, "der", "PRON", (case, gender, number), PronType="Rel")


@cache
def interrogative(case: str, of_person: bool) -> MadeWord:
    """Wer or was, in its case."""
    form = {"Nom": "wer", "Acc": "wen", "Dat": "wem"}[case] if of_person else "was"
    lemma = "wer" if of_person else "was"
    return word(form, lemma, "PRON", Case=case, Number="Sing", PronType="Int")


@cache
def interrogative_adverb(preposition: str) -> MadeWord:
    """Worauf, womit: `was` joined to a preposition."""
    form = "wo" + ("r" if preposition[0] in "aeiouäöü" else "") + preposition
    return word(form, form, "ADV", PronType="Int")


@cache
def finite(
    verb: GermanVerb, tense: str, person: int, number: str, upos: str, prefix: str
) -> MadeWord:
    """A finite verb. prefix: the separable one, if it is joined to the verb."""
    if verb.infinitive == "sein":
        form = _be(tense, person, number)
    elif tense == "past":
        ending = "" if number == "Sing" else "n" if verb.past.endswith("e") else "en"
        form = verb.past + ending
    elif number == "Plur":
        form = verb.infinitive
    elif person == 3:
        form = verb.third
    else:
        form = _first(verb)
    lemma = prefix + verb.infinitive
    return words.finite(prefix + form, lemma, upos, (person, number), tense == "past")


def _be(tense: str, person: int, number: str) -> str:
    if tense == "past":
        return "war" if number == "Sing" else "waren"
    return "sind" if number == "Plur" else "ist" if person == 3 else "bin"


def _first(verb: GermanVerb) -> str:
    if verb.infinitive == "wissen":
        return verb.third
    stem = verb.infinitive.removesuffix("n")
    return stem if stem.endswith("e") else stem + "e"


@cache
def infinitive(verb: GermanVerb, upos: str) -> MadeWord:
    """An infinitive, its prefix joined."""
    form = verb.prefix + verb.infinitive
    return word(form, form, upos, VerbForm="Inf")


@cache
def participle(verb: GermanVerb, upos: str) -> MadeWord:
    """A past participle, its prefix joined."""
    form = verb.prefix + verb.participle
    return word(form, verb.prefix + verb.infinitive, upos, VerbForm="Part")


@cache
def modal(entry: Modal, person: int, number: str) -> MadeWord:
    """A modal or the future's `werden`; `sollte` is a subjunctive."""
    form = entry.german[2 if number == "Plur" else 1 if person == 3 else 0]
    mood = "Sub" if entry.subjunctive else "Ind"  # sollte, könnte: the past subjunctive
    return words.finite(form, entry.lemma, "AUX", (person, number), entry.subjunctive, mood)


@cache
def adverb(entry: Adverb) -> MadeWord:
    """An adverb."""
    return word(entry.german, entry.german, "ADV")


def possessive_stem(possessor: Phrase) -> str:
    """The stem of the possessive, by the possessor's number and its gender in German."""
    if possessor.pronoun.person == 3 and possessor.number == "Sing":
        return "ihr" if possessor.gender == "Fem" else "sein"
    return possessor.pronoun.german[3]


def marks_case(phrase: Phrase, case: str) -> bool:
    """Whether the phrase looks different in the nominative and in `case` (Acc or Dat)."""
    if phrase.kind is Kind.NAME:
        return False
    if phrase.kind is Kind.PRONOUN:
        forms = phrase.pronoun.german
        return forms[0] != forms[CASES[case]]
    if phrase.number == "Sing" or phrase.kind is Kind.RELATIVE:
        return case == "Dat" or (phrase.gender == "Masc" and phrase.number == "Sing")
    if case == "Acc":
        return False
    assert phrase.noun is not None
    inflected = phrase.determiner not in (
        Determiner.INDEFINITE,
        Determiner.TWO,
        Determiner.THREE,
    )
    plain, dative = (noun(phrase.noun, name, "Plur").form for name in ("Nom", "Dat"))
    return inflected or phrase.adjective is not None or plain != dative
