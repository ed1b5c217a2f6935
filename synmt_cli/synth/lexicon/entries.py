"""The entries of the lexicon, and how its tables are read.

A noun has one sort (person, food, ...); a verb says which sorts its subject and its complement
may have, so that nobody eats a bridge. Sorts are bits, masks of sorts are integers.
"""

from dataclasses import dataclass

SORTS = (
    *("person", "animal", "text", "food", "tool", "clothes", "device", "vehicle", "furniture"),
    *("home", "institution", "area", "opening", "event", "matter"),
)
SORT = {name: 1 << i for i, name in enumerate(SORTS)}
PERSON, ANIMAL = SORT["person"], SORT["animal"]
GROUPS = {
    "living": "person animal",
    "small": "text food tool clothes",
    "goods": "text food tool clothes device vehicle furniture",
    "building": "home institution",
    "place": "building area",
    "topic": "event matter text",
}


def mask(names: str) -> int:
    """The union of the named sorts and groups of sorts.

    >>> mask("living") == PERSON | ANIMAL
    True
    """
    bits = 0
    for name in names.split():
        bits |= mask(GROUPS[name]) if name in GROUPS else SORT[name]
    return bits


@dataclass(frozen=True, slots=True, eq=False)
class Pronoun:
    """A personal pronoun with its reflexive and possessive. English: nom, acc, refl, poss.

    German: nom, acc, dat, the stem of the possessive. gender: that of the person meant.
    """

    english: tuple[str, str, str, str]
    german: tuple[str, str, str, str]
    person: int
    number: str
    gender: str


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun or a name: (singular, plural) in both languages; a name has no plural.

    gender: that of the German word. pronoun: the English one that replaces the singular. weak: the
    German singular takes the plural's form in every case but the nominative.
    """

    english: tuple[str, str]
    german: tuple[str, str]
    gender: str
    pronoun: Pronoun
    sort: int
    weak: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class EnglishVerb:
    """An English verb's principal parts; past is empty if it looks like the present (put, read)."""

    lemma: str
    past: str
    participle: str
    particle: str = ""
    preposition: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class GermanVerb:
    """A German verb's principal parts, without the separable prefix. case: the complement's."""

    infinitive: str
    third: str
    past: str
    participle: str
    prefix: str = ""
    preposition: str = ""
    case: str = "Acc"
    auxiliary: str = "haben"
    reflexive: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """One meaning in both languages. frame: what it takes besides its subject.

    kinds: the phenomena that the verb itself brings (particle, reflexive, dative).
    manner: the adverbs of manner that go with it, a key of modifiers.MANNERS. stative: it takes
    no adverbial. local: it takes no place, because it has or leaves one. oneself: its complement
    may be the subject itself.
    """

    english: EnglishVerb
    german: GermanVerb
    frame: str
    subject: int
    complement: int
    kinds: frozenset[str]
    manner: str = ""
    stative: bool = False
    local: bool = False
    oneself: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective. stem: takes the German endings. sorts: those of the nouns that it fits.

    passing: a state that comes and goes (tired), so that adverbs of time go with it.
    """

    english: str
    german: str
    stem: str
    sorts: int
    passing: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Adverb:
    """An adverb that is one word in both languages. noun: it is a noun in English (today)."""

    english: str
    german: str
    noun: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Preposition:
    """A preposition of place or company; it takes the dative in German."""

    english: str
    german: str


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A modal or future auxiliary. german: first and third person singular, plural.

    deniable: negation means the same in both languages. lasting: it goes with states.
    """

    english: str
    lemma: str
    german: tuple[str, str, str]
    deniable: bool = True
    lasting: bool = True
    subjunctive: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """A word that opens a subordinate clause."""

    english: str
    german: str


def german_verb(text: str) -> GermanVerb:
    """Reads `[sich] [prefix+]infinitive [third past participle] [*sein] [prep:case | +dat]`.

    Without principal parts the verb is regular (weak).

    >>> verb = german_verb("an+rufen ruft rief gerufen")
    >>> verb.prefix, verb.infinitive, verb.participle
    ('an', 'rufen', 'gerufen')
    >>> german_verb("sich erinnern an:acc").participle
    'erinnert'
    """
    words = text.split()
    reflexive = words[0] == "sich"
    words = words[reflexive:]
    auxiliary = "sein" if "*sein" in words else "haben"
    dative = "+dat" in words
    governed = next((word for word in words if ":" in word), "")
    parts = [word for word in words if word not in ("*sein", "+dat", governed)]
    prefix, _, infinitive = parts[0].rpartition("+")
    third, past, participle = parts[1:] or _weak(infinitive)
    preposition, _, case = governed.partition(":")
    return GermanVerb(
        infinitive=infinitive,
        third=third,
        past=past,
        participle=participle,
        prefix=prefix,
        preposition=preposition,
        case="Dat" if dative or case == "dat" else "Acc",
        auxiliary=auxiliary,
        reflexive=reflexive,
    )


def _weak(infinitive: str) -> tuple[str, str, str]:
    stem = infinitive.removesuffix("n").removesuffix("e")
    third = stem + ("et" if stem.endswith(("t", "d", "fn", "chn")) else "t")
    bare = infinitive.startswith(("be", "ver", "ent", "er", "ge")) or stem.endswith("ier")
    return third, third + "e", third if bare else "ge" + third


def english_verb(text: str) -> EnglishVerb:
    """Reads `lemma [past participle] [+particle] [preposition]`; a past of `-` is left out.

    >>> english_verb("wait / for").preposition
    'for'
    >>> english_verb("carry").past
    'carried'
    """
    forms, _, preposition = text.partition("/")
    words = forms.split()
    particle = words.pop()[1:] if words[-1].startswith("+") else ""
    lemma = words[0]
    past, participle = words[1:] or (_regular(lemma),) * 2
    return EnglishVerb(
        lemma, "" if past == "-" else past, participle, particle, preposition.strip()
    )


def _regular(lemma: str) -> str:
    if lemma.endswith("e"):
        return lemma + "d"
    if lemma.endswith("y") and lemma[-2] not in "aeiou":
        return lemma[:-1] + "ied"
    return lemma + "ed"


def with_s(word: str) -> str:
    """The plural of a regular noun, or the third person of a verb.

    >>> [with_s(word) for word in ("cat", "box", "story", "boy", "watch")]
    ['cats', 'boxes', 'stories', 'boys', 'watches']
    """
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "o")) else "s")
