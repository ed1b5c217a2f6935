"""Adjectives, adverbs, prepositions of place, modals and conjunctions."""

from synmt_cli.synth.lexicon.entries import Adjective, Adverb, Conjunction, Modal, Preposition, mask
from synmt_cli.synth.lexicon.nouns import NOUNS

# english german[/stem] | sorts of nouns [| passing]
_ADJECTIVES = """
big groß | living goods place opening
small klein | living goods place opening
old alt | living goods place opening topic
new neu | goods building opening topic
young jung | living
beautiful schön | living goods place event
ugly hässlich | living goods building
expensive teuer/teur | goods building
cheap billig | goods
red rot | tool clothes vehicle furniture device opening
blue blau | tool clothes vehicle furniture device opening
green grün | tool clothes vehicle furniture device opening
black schwarz | animal tool clothes vehicle furniture device
tired müde/müd | living | passing
hungry hungrig | living | passing
sad traurig | living text event | passing
happy glücklich | person | passing
angry wütend | living | passing
clever klug | living
famous berühmt | person text building area
rich reich | person
strong stark | living
dirty schmutzig | animal tool clothes vehicle furniture place opening | passing
heavy schwer | tool furniture device
interesting interessant | person topic place
sweet süß | food
"""


def _adjective(line: str) -> Adjective:
    words, sorts, *notes = line.split("|")
    english, german = words.split()
    base, _, stem = german.partition("/")
    return Adjective(english, base, stem or base, mask(sorts), passing=bool(notes))


ADJECTIVES = tuple(_adjective(line) for line in _ADJECTIVES.strip().split("\n"))

TODAY = Adverb("today", "heute", noun=True)
YESTERDAY = Adverb("yesterday", "gestern", noun=True)
TOMORROW = Adverb("tomorrow", "morgen", noun=True)
NOW = Adverb("now", "jetzt")
# English puts these before the verb, German where other adverbs go.
FREQUENCIES = (
    Adverb("often", "oft"),
    Adverb("always", "immer"),
    Adverb("sometimes", "manchmal"),
    Adverb("rarely", "selten"),
)
MANNERS = {
    "loud": (Adverb("loudly", "laut"), Adverb("quietly", "leise")),
    "careful": (
        Adverb("slowly", "langsam"),
        Adverb("quickly", "schnell"),
        Adverb("carefully", "vorsichtig"),
    ),
}

WITH = Preposition("with", "mit")
IN, ON, AT = Preposition("in", "in"), Preposition("on", "auf"), Preposition("at", "an")
BEHIND, BESIDE = Preposition("behind", "hinter"), Preposition("beside", "neben")
UNDER = Preposition("under", "unter")
# Attributes of a noun: (sorts of the noun, preposition, sorts of the preposition's noun).
ATTRIBUTES = tuple(
    (mask(sorts), preposition, mask(others))
    for sorts, preposition, others in (
        ("person", WITH, "animal tool clothes"),
        ("living vehicle", BESIDE, "building furniture"),
        ("living vehicle", BEHIND, "building furniture"),
        ("small device", ON, "furniture"),
        ("small device", UNDER, "furniture"),
        ("small device furniture", BESIDE, "furniture opening"),
        ("building furniture opening", BEHIND, "building vehicle"),
        ("building", BESIDE, "building area"),
    )
)
_PLACES = {
    IN: "garden forest city village library school hotel house",
    BEHIND: "house church castle tower",
    BESIDE: "hospital hotel gate",
    AT: "window",
}
PLACES = tuple(
    (preposition, next(noun for noun in NOUNS if noun.english[0] == name))
    for preposition, names in _PLACES.items()
    for name in names.split()
)

WILL = Modal("will", "werden", ("werde", "wird", "werden"))
MODALS = (
    WILL,
    Modal("can", "können", ("kann", "kann", "können"), lasting=False),
    Modal("should", "sollen", ("sollte", "sollte", "sollten"), subjunctive=True),
    Modal("might", "können", ("könnte", "könnte", "könnten"), deniable=False, subjunctive=True),
    Modal("must", "müssen", ("muss", "muss", "müssen"), deniable=False),
)
THAT, WHETHER = Conjunction("that", "dass"), Conjunction("whether", "ob")
CIRCUMSTANCES = (
    Conjunction("because", "weil"),
    Conjunction("although", "obwohl"),
    Conjunction("while", "während"),
    Conjunction("if", "wenn"),
)
