"""The English words that count for those of the mixup sentences, and some that never do.

Which verb a translation has is disregarded, as in the paper: any of VERBS counts for any
German one. They tell where a verb is. Nouns have to be those of the sentence.
"""


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
"""
_rows = [row.split() for row in _VERBS.strip().split("\n")]
FINITE = frozenset(form for row in _rows for form in row[:3])
PARTICIPLES = frozenset(row[3] for row in _rows)
PROGRESSIVE = frozenset(row[4] for row in _rows)

BE = _words("is was are were be been being isn't wasn't")
AUXILIARIES = _words("will would can could may might shall should must does did has had")
DETERMINERS = _words(
    "the a an this that these those his her its their my your our some any",
)
RELATIVES = _words("that which who whom ,")
PREPOSITIONS = _words(
    "by of to with for from in on at into onto under over through after before",
)
CLAUSE_ENDS = _words(". ; : ! ?")
# They end like an inflected verb and are none.
NO_VERBS = _words(
    "is was has does his its this as us thus always perhaps besides sometimes towards less"
    " red bed during thing king string something nothing anything",
)
VERB_ENDINGS = ("s", "ed", "ing")
