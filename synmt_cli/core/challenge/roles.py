"""Finds out who does what to whom in an English sentence with two known nouns.

    active        the noun before the verb is the subject    the child brings the ball
    object first  two noun phrases, then the verb            the ball the child brings
    passive       the noun after `by` is the subject         the ball is brought by the child
    undecided     anything else, with the reason

It goes by rules over words, without a parser: the sentences are as short as the rules. A verb
is a form in the lexicon, or another word that is inflected like one (-s, -ed, -ing) and is not
listed as something else; participles in -en are listed. As in the paper, it does not matter
which verb a translation has, only where it is. A noun after a preposition is not an object
("insists on the horse"), except after a verb of the lexicon with on, at or against ("presses on
the table"). The nouns have to be translations of those of the sentence.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from synmt_cli.core.challenge.mixup import Item
from synmt_cli.formats.reports.mixup_scores import JudgedTranslation

ACTIVE, PASSIVE = "active", "passive"
RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|[.,;:!?]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NOUNS = {
    "Ball": ("ball",),
    "Stein": ("stone", "rock", "pebble", "brick"),
    "Tisch": ("table", "desk"),
    "Hamster": ("hamster",),
    "Kind": ("child", "kid", "baby", "infant", "toddler"),
    "Mutter": ("mother", "mom", "mum", "mommy", "mummy"),
    "Mädchen": ("girl", "maiden", "lass"),
    "Pferd": ("horse", "pony", "steed"),
    "Vater": ("father", "dad", "daddy"),
    "Hund": ("dog", "hound", "puppy"),
    "Student": ("student", "undergraduate"),
}
# Base, third person, past, participle, -ing.
_VERBS = """
bring brings brought brought bringing
take takes took taken taking
carry carries carried carried carrying
fetch fetches fetched fetched fetching
deliver delivers delivered delivered delivering
get gets got gotten getting
give gives gave given giving
hold holds held held holding
lead leads led led leading
throw throws threw thrown throwing
toss tosses tossed tossed tossing
cast casts cast cast casting
hurl hurls hurled hurled hurling
fling flings flung flung flinging
chuck chucks chucked chucked chucking
drop drops dropped dropped dropping
kick kicks kicked kicked kicking
hit hits hit hit hitting
press presses pressed pressed pressing
push pushes pushed pushed pushing
squeeze squeezes squeezed squeezed squeezing
hug hugs hugged hugged hugging
embrace embraces embraced embraced embracing
crush crushes crushed crushed crushing
squash squashes squashed squashed squashing
depress depresses depressed depressed depressing
oppress oppresses oppressed oppressed oppressing
print prints printed printed printing
urge urges urged urged urging
force forces forced forced forcing
drive drives drove driven driving
crowd crowds crowded crowded crowding
pressure pressures pressured pressured pressuring
compel compels compelled compelled compelling
rush rushes rushed rushed rushing
prod prods prodded prodded prodding
shove shoves shoved shoved shoving
pull pulls pulled pulled pulling
draw draws drew drawn drawing
drag drags dragged dragged dragging
tug tugs tugged tugged tugging
haul hauls hauled hauled hauling
attract attracts attracted attracted attracting
move moves moved moved moving
raise raises raised raised raising
put puts put put putting
set sets set set setting
lay lays laid laid laying
beat beats beat beaten beating
strike strikes struck struck striking
ride rides rode ridden riding
bear bears bore borne bearing
send sends sent sent sending
catch catches caught caught catching
make makes made made making
let lets let let letting
keep keeps kept kept keeping
leave leaves left left leaving
find finds found found finding
see sees saw seen seeing
feed feeds fed fed feeding
meet meets met met meeting
bite bites bit bitten biting
eat eats ate eaten eating
tear tears tore torn tearing
break breaks broke broken breaking
shake shakes shook shaken shaking
bind binds bound bound binding
swing swings swung swung swinging
sling slings slung slung slinging
thrust thrusts thrust thrust thrusting
spread spreads spread spread spreading
steal steals stole stolen stealing
buy buys bought bought buying
sell sells sold sold selling
win wins won won winning
lose loses lost lost losing
choose chooses chose chosen choosing
tell tells told told telling
"""
_rows = [row.split() for row in _VERBS.strip().split("\n")]
FINITE = frozenset(form for row in _rows for form in row[:3])
# Participles in -en of other verbs: they are few, and most words in -en are not participles.
_IN_EN = _words(
    "forbidden forgiven forgotten frozen hidden mistaken outridden overridden overtaken proven"
    " spoken stricken trodden undertaken woken woven written"
)
PARTICIPLES = frozenset(row[3] for row in _rows) | _IN_EN
PROGRESSIVE = frozenset(row[4] for row in _rows)

BE = _words("is was are were be been being isn't wasn't")
AUXILIARIES = _words("will would can could may might shall should must does did has had")
DETERMINERS = _words("the a an this that these those his her its their my your our some any")
RELATIVES = _words("that which who whom ,")
PREPOSITIONS = _words(
    "by of to with for from in on at into onto under over through after before against about"
    " towards toward upon across beside besides"
)
PRESSED = _words("on at against")  # "press on the table": the table is still pressed
CLAUSE_ENDS = _words(". ; : ! ?")
# Words that end like an inflected verb and are not verbs.
NO_VERBS = _words(
    "is was has does his its this as us thus always perhaps besides sometimes towards less"
    " red bed during thing king string something nothing anything everything evening morning"
    " ceiling building across unless whereas afterwards nevertheless hundred indeed",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement: RIGHT or WRONG, with ACTIVE or PASSIVE; or UNDECIDED, with the reason."""

    verdict: str
    voice: str = ""
    reason: str = ""


class Undecided(Exception):
    """A translation cannot be judged; the message says why."""


def judge(item: Item, translation: str) -> Verdict:
    """Whether a translation keeps the roles of a sentence.

    >>> item = Item("", "both", "ovs", "Hund", "bringt", "Ball")
    >>> judge(item, "The ball was brought by the dog.")
    Verdict(verdict='right', voice='passive', reason='')
    """
    words = _TOKEN.findall(translation.lower().replace("’", "'"))
    try:
        subject = _place(words, item.subject, "subject")
        object = _place(words, item.object, "object")
        agent, voice = _agent(words, *sorted((subject, object)))
    except Undecided as reason:
        return Verdict(UNDECIDED, reason=str(reason))
    return Verdict(RIGHT if agent == subject else WRONG, voice)


def judged(item: Item, translation: str) -> JudgedTranslation:
    """The verdict of `judge`, as reports have it."""
    verdict = judge(item, translation)
    outcome = f"{verdict.verdict}_{verdict.voice}" if verdict.voice else verdict.verdict
    facts = (item.id, item.construction, item.order, item.sentence, translation)
    return JudgedTranslation(*facts, outcome, verdict.reason)


def _place(words: Sequence[str], noun: str, role: str) -> int:
    """The place of the one word for a German noun. Raises Undecided for none or several."""
    places = [place for place, word in enumerate(words) if word in NOUNS[noun]]
    if len(places) != 1:
        raise Undecided(f"{'no' if not places else 'more than one'} {role}")
    return places[0]


def _agent(words: Sequence[str], first: int, second: int) -> tuple[int, str]:
    """The place of the noun that acts, and the voice. Raises Undecided."""
    between, after = words[first + 1 : second], words[second + 1 :]
    if CLAUSE_ENDS.intersection(between):
        raise Undecided("more than one clause")
    if _is_after_preposition(words[:first]):
        raise Undecided("the first noun follows a preposition")
    if "by" in between:
        return _by(between, second)
    if BE.intersection(between):
        if any(_is_progressive(word) for word in between):
            return first, ACTIVE
        is_passive = any(_is_participle(word) for word in between)
        raise Undecided("passive without by" if is_passive else "no verb of action")
    if any(_is_verb(word) for word in between):
        return _of_active(between, first)
    if _is_object_first(between, after):
        return second, ACTIVE
    raise Undecided("no verb between the nouns")


def _of_active(between: Sequence[str], first: int) -> tuple[int, str]:
    """The first noun and ACTIVE. Raises Undecided if the second noun is not an object."""
    is_known = bool((FINITE | PARTICIPLES | PROGRESSIVE).intersection(between))
    if _is_after_preposition(between, PREPOSITIONS - PRESSED if is_known else PREPOSITIONS):
        raise Undecided("the second noun follows a preposition")
    return first, ACTIVE


def _is_after_preposition(
    before: Sequence[str], prepositions: frozenset[str] = PREPOSITIONS
) -> bool:
    """Whether the words before a noun end with a preposition and determiners."""
    while before and before[-1] in DETERMINERS:
        before = before[:-1]
    return bool(before) and before[-1] in prepositions


def _by(between: Sequence[str], second: int) -> tuple[int, str]:
    """The second noun and PASSIVE, with or without a form of be.

    Raises Undecided unless a participle is before `by`, and `by` belongs to the second noun.
    """
    at = len(between) - 1 - list(reversed(between)).index("by")
    verb, phrase = between[:at], between[at + 1 :]
    known = any(word in PARTICIPLES for word in verb)
    other = bool(BE.intersection(verb)) and any(_is_participle(word) for word in verb)
    if not (known or other) or any(_is_verb(word) for word in phrase):
        raise Undecided("by without a passive")
    return second, PASSIVE


def _is_object_first(between: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the nouns are the heads of two phrases and a verb follows."""
    if not DETERMINERS.intersection(between) or set(between) - DETERMINERS - RELATIVES:
        return False
    while after and after[0] in AUXILIARIES:
        after = after[1:]
    return bool(after) and _is_verb(after[0]) and not _is_progressive(after[0])


def _is_verb(word: str) -> bool:
    return word in FINITE or word in PARTICIPLES or word in PROGRESSIVE or _is_inflected(word)


def _is_inflected(word: str, endings: tuple[str, ...] = ("s", "ed", "ing")) -> bool:
    return len(word) > 3 and word.endswith(endings) and word not in NO_VERBS and "'" not in word


def _is_progressive(word: str) -> bool:
    return word in PROGRESSIVE or (_is_inflected(word, ("ing",)) and word != "being")


def _is_participle(word: str) -> bool:
    return word in PARTICIPLES or _is_inflected(word, ("ed",))
