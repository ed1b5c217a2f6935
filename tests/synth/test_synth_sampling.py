"""The grammar gives what is asked for, as the seed decides."""

import itertools

import pytest
from support.synth_trees import made

from synmt_cli.errors import UsageError
from synmt_cli.synth.pairs import PATIENCE, digest, pairs
from synmt_cli.synth.settings import PHENOMENA, SynthSettings, phenomena


def texts(n, seed=1, settings=None, **options):
    drawn = pairs(settings or SynthSettings(), seed, n, **options)
    return [(pair.english.text, pair.german.text) for pair in drawn]


def test_more_pairs_begin_with_the_same():
    assert texts(50) == texts(80)[:50]
    assert texts(50, seed=1) != texts(50, seed=2) != texts(50, seed=-2)


@pytest.mark.parametrize("name", PHENOMENA)
def test_one_phenomenon_alone(name):
    for english, german in made(60, names=name, mix=1.0, max_depth=2):
        assert english.phenomena == german.phenomena == {name}
        assert (english.depth > 0) == (name == "relative")


@pytest.mark.parametrize("name", PHENOMENA)
def test_a_phenomenon_that_was_not_chosen_never_comes(name):
    others = ",".join(other for other in PHENOMENA if other != name)
    for english, _ in made(150, names=others, mix=0.5):
        assert name not in english.phenomena


def test_the_trees_show_the_phenomena_named():
    signs = {
        "subordinate": lambda tree: tree.clauses("advcl", "ccomp"),
        "particle": lambda tree: tree.clauses("compound:prt"),
        "dative": lambda tree: tree.clauses("obl:arg"),
        "relative": lambda tree: tree.clauses("acl:relcl"),
        "adjective": lambda tree: tree.clauses("amod"),
        "negation": lambda tree: [w for w in tree.words if w.lemma in ("nicht", "kein", "not")],
    }
    for name, sign in signs.items():
        without = ",".join(other for other in PHENOMENA if other != name)
        assert not any(sign(tree) for pair in made(200, names=without) for tree in pair)
        drawn = made(60, names=name, mix=1.0)
        assert all(sign(german) for _, german in drawn), name
        shown = [bool(sign(english)) for english, _ in drawn]
        assert all(shown) == (name not in ("particle", "dative")), name
        assert any(shown) == (name != "dative"), name  # `believe a friend` has an object


def test_every_sentence_is_as_deep_as_asked():
    depths = [english.depth for english, _ in made(200, min_depth=2, max_depth=4)]
    assert set(depths) == {2, 3, 4}
    assert {e.depth for e, _ in made(200, max_depth=0)} == {0}


def test_weights_say_how_often():
    drawn = made(600, names="plain:3,particle:1", mix=0)
    share = sum("particle" in english.phenomena for english, _ in drawn) / 600
    assert share == pytest.approx(0.25, abs=0.06)
    drawn = made(300, names="plain:0,particle:1,modal:0", mix=0.5)
    assert all("particle" in english.phenomena for english, _ in drawn)
    assert any("modal" in english.phenomena for english, _ in drawn)


@pytest.mark.parametrize(
    "options", [{}, {"mix": 0.0, "max_depth": 0}, {"extrapose": True, "particles": "joined"}]
)
def test_either_side_determines_the_other(options):
    to_german, to_english = {}, {}
    for pair in pairs(SynthSettings(**options), 3, 8000):
        english, german = pair.english.text, pair.german.text
        assert to_german.setdefault(english, german) == german
        if "object-first" not in pair.description.ambiguous:
            assert to_english.setdefault(german, english) == english


def test_plain_english_order_does_not_show_what_german_puts_first():
    names = "fronting,object-first"
    settings = [SynthSettings(phenomena(names), 0.0, marked=marked) for marked in (True, False)]
    marked, plain = (texts(200, settings=one) for one in settings)
    assert all("," in english for english, _ in marked)
    assert not any("," in english for english, _ in plain)


@pytest.mark.parametrize(("particles", "expected"), [("split", 1), ("joined", 0), ("mixed", None)])
def test_particles_stand_where_asked(particles, expected):
    """In `calls the doctor up` a noun stands between verb and particle."""
    apart = set()
    for english, _ in made(300, names="particle", mix=0, max_depth=0, particles=particles):
        particle, obj = english.root.child("compound:prt"), english.root.child("obj")
        if particle and obj and obj.upos != "PRON":
            apart.add(int(obj.index < particle.index))
    assert apart == ({0, 1} if expected is None else {expected})


def test_unique_and_excluded_lines():
    settings = SynthSettings(phenomena("reflexive"), 0.0, 0, 0)
    free = texts(600, settings=settings)
    assert len(set(free)) < 600
    lines = [line for pair in texts(600, settings=settings, unique=True) for line in pair]
    assert len(set(lines)) == 1200
    taken = frozenset(digest(german) for _, german in free)
    kept = texts(300, settings=settings, excluded=taken)
    assert not set(kept) & set(free)


class Everything:
    def __contains__(self, item):
        return True

    def __bool__(self):
        return True


def test_an_exhausted_grammar_says_so():
    with pytest.raises(UsageError, match=f"no new pair in {PATIENCE:,} tries"):
        next(pairs(SynthSettings(phenomena("plain"), 0.0), 1, 5, excluded=Everything()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mix": 1.5}, "--mix is 1.5"),
        ({"mix": float("nan")}, "--mix is nan"),
        ({"min_depth": 3}, "above --depth 2"),
        ({"min_depth": 1, "weights": {"plain": 1.0}}, "needs relative"),
        ({"max_depth": 0, "weights": {"relative": 1.0}}, "needs a --depth"),
        ({"max_depth": 0, "weights": {"relative": 1.0, "plain": 0.0}}, "needs a --depth"),
    ],
)
def test_refuses_what_no_sentence_satisfies(options, message):
    with pytest.raises(UsageError, match=message):
        SynthSettings(**options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("relativ", "did you mean relative"),
        ("", "unknown ''"),
        ("plain:-1", "plain: the weight must be a number such as 0.5, not '-1'"),
        ("plain:1e3", "plain: the weight must be a number such as 0.5, not '1e3'"),
        ("plain,plain", "twice"),
        ("plain:0,modal:0", "sum above 0"),
        ("plain:" + "9" * 400, "finite"),
    ],
)
def test_refuses_phenomena_it_does_not_know(text, message):
    with pytest.raises(UsageError, match=message):
        phenomena(text)


def test_every_combination_can_be_drawn():
    for name, mix, depth in itertools.product(PHENOMENA, (0.0, 1.0), (1, 3)):
        weights = {**dict.fromkeys(PHENOMENA, 0.0), name: 1.0}
        drawn = list(pairs(SynthSettings(weights, mix, depth, depth), 1, 5))
        assert all(pair.description.depth == depth for pair in drawn)
