"""The sentences of Appendix C, and who acts in English ones."""

import pytest

from synmt_cli.core.challenge.mixup import Item, items
from synmt_cli.core.challenge.roles import NOUNS, judge

ITEMS = items()
CHILD_THROWS_BALL = Item("x", "object", "ovs", "Kind", "wirft", "Ball")
VERBS = {
    "bringt": ("brings", "brought"),
    "wirft": ("throws", "thrown"),
    "drückt": ("presses", "pressed"),
    "drängt": ("urges", "urged"),
    "zieht": ("pulls", "pulled"),
}


def test_there_are_as_many_sentences_as_in_the_paper():
    for order in ("ovs", "svo"):
        kinds = [one.construction for one in ITEMS if one.order == order]
        assert {kind: kinds.count(kind) for kind in kinds} == {
            "object": 36,
            "subject": 27,
            "both": 36,
        }
    assert len({one.sentence for one in ITEMS}) == len({one.id for one in ITEMS}) == 198


def test_the_papers_examples_are_there():
    sentences = [one.sentence for one in ITEMS]
    for pair in (
        ["Den Ball bringt der Hund", "Der Hund bringt den Ball"],
        ["Das Pferd drängt der Hund", "Der Hund drängt das Pferd"],
        ["Den Hamster drückt die Mutter", "Die Mutter drückt den Hamster"],
    ):
        place = sentences.index(pair[0])
        assert sentences[place : place + 2] == pair


def test_orders_differ_by_nothing_but_order():
    for ovs, svo in zip(ITEMS[::2], ITEMS[1::2], strict=True):
        assert (ovs.order, svo.order) == ("ovs", "svo")
        assert (ovs.subject, ovs.verb, ovs.object) == (svo.subject, svo.verb, svo.object)
        assert sorted(ovs.sentence.lower().split()) == sorted(svo.sentence.lower().split())


@pytest.mark.parametrize("one", ITEMS[::2], ids=lambda one: one.id)
def test_every_sentence_in_every_wording(one):
    finite, participle = VERBS[one.verb]
    for subject in NOUNS[one.subject]:
        for object in NOUNS[one.object]:
            active = judge(one, f"The {subject} {finite} the {object}.")
            passive = judge(one, f"The {object} is {participle} by the {subject}.")
            swapped = judge(one, f"The {object} {finite} the {subject}.")
            swapped_passive = judge(one, f"the {subject} was {participle} by a {object}")
            found = [(x.verdict, x.voice) for x in (active, passive, swapped, swapped_passive)]
            assert found == [
                ("right", "active"),
                ("right", "passive"),
                ("wrong", "active"),
                ("wrong", "passive"),
            ]


@pytest.mark.parametrize(
    ("translation", "verdict", "voice"),
    [
        ("A child is throwing a red ball.", "right", "active"),
        ("The child has thrown the ball", "right", "active"),
        ("The child will not throw the ball", "right", "active"),
        ("the kid swallows the ball", "right", "active"),  # the verb does not matter
        ("The ball the child throws.", "right", "active"),
        ("It is the ball that the child throws.", "right", "active"),
        ("The ball, the child will throw!", "right", "active"),
        ("The ball thrown by the little child", "right", "passive"),
        ("The ball is being swallowed by the child", "right", "passive"),
        ("The ball gets thrown by the child", "right", "passive"),
        ("It is the ball that throws the child.", "wrong", "active"),
        ("The ball is throwing the child", "wrong", "active"),
        ("THE BALL PUSHES ON THE CHILD", "wrong", "active"),
    ],
)
def test_wordings(translation, verdict, voice):
    found = judge(CHILD_THROWS_BALL, translation)
    assert (found.verdict, found.voice, found.reason) == (verdict, voice, "")


@pytest.mark.parametrize(
    ("translation", "reason"),
    [
        ("", "no subject"),
        ("The child throws.", "no object"),
        ("The girl throws the ball.", "no subject"),
        ("The child's ball is thrown.", "no subject"),
        ("The children throw the ball.", "no subject"),
        ("The child throws the ball to the child.", "more than one subject"),
        ("The ball is thrown the child.", "passive without by"),
        ("The ball is the child's or the child.", "no verb of action"),
        ("The ball and the child.", "no verb between the nouns"),
        ("The ball child throws.", "no verb between the nouns"),
        ("Throws the child the ball?", "no verb between the nouns"),
        ("The child is the ball throwing.", "no verb of action"),
        ("By the child the ball is thrown.", "the first noun follows a preposition"),
        ("The ball throws by the child.", "by without a passive"),
        ("The ball. It throws the child.", "more than one clause"),
        ("The ball is then by the child.", "by without a passive"),
        ("The ball is even open by the child.", "by without a passive"),
        ("The child across the ball.", "no verb between the nouns"),
        ("The child this evening the ball.", "no verb between the nouns"),
    ],
)
def test_what_is_undecided(translation, reason):
    found = judge(CHILD_THROWS_BALL, translation)
    assert (found.verdict, found.reason) == ("undecided", reason)


def test_no_english_word_stands_for_two_nouns():
    words = [word for of_noun in NOUNS.values() for word in of_noun]
    assert len(words) == len(set(words))
    assert NOUNS.keys() == {one.subject for one in ITEMS} | {one.object for one in ITEMS}


@pytest.mark.parametrize(
    ("translation", "verdict"),
    [
        ("The child put the ball down.", "right"),
        ("The child rode the ball", "right"),
        ("The ball beat the child", "wrong"),
        ("The ball was beaten by the child", "right"),
        ("The child was hidden by the ball", "wrong"),
        ("The child presses on the ball", "right"),
        ("The child insists on the ball", "undecided"),
        ("The child brings to the ball", "undecided"),
    ],
)
def test_other_verbs_and_prepositions(translation, verdict):
    assert judge(CHILD_THROWS_BALL, translation).verdict == verdict
