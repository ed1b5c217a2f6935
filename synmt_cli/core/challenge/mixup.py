"""German sentences whose subject and object change places (Choshen and Abend, 2021, App. C).

Three lists of nouns and verbs make 36 + 27 + 36 = 99 sentences with the object first, and the
same 99 with the subject first. The article tells subject and object apart:

    object   den Ball bringt das Kind       den is an object, das could be either
    subject  das Pferd drängt der Vater     der is a subject
    both     den Ball bringt der Vater

The sentences stand without a full stop, as in the paper.
"""

from dataclasses import dataclass
from itertools import product

ORDERS = ("ovs", "svo")
THINGS = ("Ball", "Stein", "Tisch", "Hamster")
VERBS_OF_THINGS = ("bringt", "wirft", "drückt")
MASCULINE = ("Vater", "Hund", "Student")
# Construction: objects, verbs, subjects. Every noun is the same in both cases.
LISTS = {
    "object": (THINGS, VERBS_OF_THINGS, ("Kind", "Mutter", "Mädchen")),
    "subject": (("Pferd", "Kind", "Mädchen"), ("drängt", "drückt", "zieht"), MASCULINE),
    "both": (THINGS, VERBS_OF_THINGS, MASCULINE),
}
NEUTER, FEMININE = {"Kind", "Mädchen", "Pferd"}, {"Mutter"}


@dataclass(frozen=True, slots=True)
class Item:
    """A sentence. subject, verb, object: the German words, the nouns without article."""

    id: str
    construction: str
    order: str
    subject: str
    verb: str
    object: str

    @property
    def sentence(self) -> str:
        """The German sentence.

        >>> Item("", "both", "ovs", "Hund", "bringt", "Ball").sentence
        'Den Ball bringt der Hund'
        """
        subject = f"{_article(self.subject, 'der')} {self.subject}"
        object = f"{_article(self.object, 'den')} {self.object}"
        first, last = (object, subject) if self.order == "ovs" else (subject, object)
        return f"{first[0].upper()}{first[1:]} {self.verb} {last}"


def _article(noun: str, masculine: str) -> str:
    """The definite article of a noun. masculine: that of masculine nouns, which differs by case."""
    return "das" if noun in NEUTER else "die" if noun in FEMININE else masculine


def items() -> list[Item]:
    """All 198 sentences: each with the object first, then the same one with the subject first.

    >>> [one.id for one in items()][:3]
    ['object-01-ovs', 'object-01-svo', 'object-02-ovs']
    """
    return [
        Item(f"{construction}-{number:02}-{order}", construction, order, subject, verb, object)
        for construction, lists in LISTS.items()
        for number, (object, verb, subject) in enumerate(product(*lists), 1)
        for order in ORDERS
    ]
