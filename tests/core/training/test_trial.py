"""The trial of one's own variants: what it refuses, what it finds doubtful, and what passes."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from support.own_variants import EXAMPLE, changed

from synmt_cli.core import variants
from synmt_cli.core.run.config import from_settings, resolve
from synmt_cli.core.training import trial
from synmt_cli.core.variants.table import VARIANTS
from synmt_cli.errors import ConfigError

SHAPE = r"\(5, 4, 55, 55\)"  # sentences, heads of tiny, tokens of the longest
SMALL = ("d_ff=64", "encoder_layers=2", "decoder_layers=2")


def tried(variant="near-parent", *settings):
    return trial.of(resolve(variant, "tiny", from_settings([*SMALL, *settings])))


def with_hook(hook, result):
    """The example with one more hook, or another `added`."""
    text = changed("modifier import ", "modifier import Dot, ")
    if hook.startswith("added"):
        text = changed("def added(", "def unused(", text=text)
    before = "\n\ndef near_parent("
    return changed(before, f"    def {hook}:\n        return {result}\n{before}", text=text)


@pytest.mark.parametrize("variant", ["near-parent", "near-parent+rel", "near-parent+bitran"])
@pytest.mark.parametrize("settings", [(), ("model.norm=pre", "near-parent.layer=1")])
def test_the_example_passes(own, variant, settings):
    own(EXAMPLE)
    assert tried(variant, *settings) == []


def test_variants_of_synmt_are_not_tried(own, monkeypatch):
    own(EXAMPLE)
    monkeypatch.delattr(trial, "Transformer")
    assert tried("pascal+rel") == []


@pytest.mark.parametrize(
    "variant", [*(one.name for one in VARIANTS.values() if not one.data), "struct-abs+struct-rel"]
)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_variants_of_synmt_would_pass(own, monkeypatch, variant, norm):
    own(EXAMPLE)
    as_own = {name: replace(one, own=True) for name, one in VARIANTS.items()}
    monkeypatch.setattr(variants, "known", lambda: as_own)
    assert tried(variant, f"model.norm={norm}") == []


# Results of hooks, good and bad.

ADDED, SCORES = "added(self, state, site)", "scores(self, state, site, scores)"
VISIBLE = "visible(self, state, n)"


@pytest.mark.parametrize(
    ("hook", "result", "message"),
    [
        (ADDED, "state[..., :1, :2]", rf"numbers of shape {SHAPE}, not \(5, 1, 1, 2\)$"),
        (ADDED, "state[None, None]", r"numbers .*, not \(1, 1, 5, 1, 55, 55\)$"),
        (ADDED, "2", rf"numbers of shape {SHAPE}, not int$"),
        (ADDED, "state > 1", r"numbers of shape .*, not torch\.bool$"),
        (ADDED, "state / 0", r"finite numbers of shape"),
        (ADDED, "(state == 0).long()", r"floating-point numbers, not torch\.int64$"),
        (ADDED, "Dot(site.q, site.k[..., :9])", r"a Dot of .* and \(5, 4, 55, 9\)$"),
        (ADDED, "Dot(site.q[:1], site.k)", r"a Dot of .*, not of \(1, 4, 55, 32\) and"),
        (SCORES, "scores[:1]", rf"numbers of shape {SHAPE}, not \(1, 4, 55, 55\)$"),
        (SCORES, "None", r"numbers .*, not NoneType$"),
        ("context(self, s, i, w, context)", "w", rf"numbers .*\(5, 4, 55, 32\), not {SHAPE}$"),
        ("tokens(self, state, x)", "x[:, :1]", r"numbers .* not \(5, 1, 128\)$"),
        ("tokens(self, state, x)", "x.double()", r"numbers of type .*32, not torch\.float64$"),
        ("inputs(self, state, x)", "x.mean(-1)", r"numbers .* not \(5, 55\)$"),
        ("positions(self, state, p)", "p[..., :2]", r"numbers .* not \(1, 55, 2\)$"),
        ("related(self, state, layer)", "state", r"a Related or None, not Tensor$"),
        (VISIBLE, "(state > 3).expand(-1, 4, -1, -1)", r"something to see for each token$"),
        (VISIBLE, "state", r"bool of shape .*, not torch\.float32$"),
        (VISIBLE, "(state < 9)[:, 0]", rf"bool of shape {SHAPE}, not \(5, 55, 55\)$"),
        ("loss(self, state)", "state", r"numbers of shape \(\), not \(5, 1, 55, 55\)$"),
    ],
)
def test_what_attention_cannot_use_is_refused(own, hook, result, message):
    own(with_hook(hook, result))
    where = rf"variant near-parent: NearParent\.{hook.partition('(')[0]} has to return "
    with pytest.raises(ConfigError, match=where + message):
        tried()


RELATED = b"""
import torch
from torch import nn
from synmt_cli.core.model.modifier import Modifier
from synmt_cli.core.model.relations import Related, Rows, Table
from synmt_cli.core.variants.table import Variant


class Apart(Modifier):
    needs = ("depth",)

    def __init__(self, spec):
        super().__init__(range(spec.n_layers))
        self.heads = spec.size.n_heads
        self.key = nn.Parameter(torch.randn(spec.n_layers, 100, spec.size.d_head))

    def prepare(self, side):
        depth = side.features["depth"]
        index = depth[:, :, None] - depth[:, None, :] + 50
        return Table(Rows.of(index, 100, len(index), self.heads), self.key)

    def related(self, state, layer):
        return Related(state, None, layer)


def apart(spec):
    return (Apart(spec),)


VARIANTS = [Variant("apart", "", "", encoder="apart", source_trees=True)]
"""


def test_learned_vectors_of_relations_pass(own):
    own(RELATED)
    assert tried("apart") == []
    own(
        changed(
            ".Parameter(torch", ".Parameter(0.01 * torch", "] + 50", "] + 50).int()", text=RELATED
        ).replace(b"= depth[:", b"= (depth[:")
    )
    assert tried("apart+rel") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "spec.size.d_head)",
            "9)",
            r"with vectors of shape \(layers, 100, 32\), not \(4, 100, 9\)$",
        ),
        ("(index, 100,", "(index, 200,", r"with .* shape \(layers, 200, 32\), not \(4, 100, 32\)$"),
        ("randn(spec.n_layers,", "randn(1,", r"with vectors for layer 1, not only up to layer 0$"),
        ("] + 50", "]", r"whose index of rows has values from 0 to 99, not from -40 to 40$"),
        ("] + 50", "] + 60", r"whose index of rows has values from 0 to 99, not from 20 to 100$"),
        ("] + 50", "] + 50.0", r"whose index of rows has whole numbers, not torch\.float32$"),
        (
            "(index, 100,",
            "(index[0], 100,",
            r"whose index of rows has the shape \(5, 55, 55\), not \(55, 55\)$",
        ),
        ("self.heads)", "2)", r"with Rows for 4 heads, not for 2$"),
        ("(state, None", "(state.vectors, None", r"of Tables, not of Parameter$"),
        (", self.key)", ", [self.key])", r"with vectors in one Tensor, not list$"),
    ],
)
def test_relations_that_attention_cannot_use_are_refused(own, old, new, message):
    own(changed(old, new, text=RELATED))
    with pytest.raises(ConfigError, match=rf"Apart\.related has to return a Related {message}"):
        tried("apart", "encoder_layers=4")


def test_what_attention_refuses_later_names_the_variant(own):
    """Numbers for the five lines of the trial, which fit the first pass alone."""
    own(with_hook(ADDED, "torch.zeros(5, 4, 55, 55)"))
    message = r"variant near-parent: attention cannot use what the hooks return \(RuntimeError: "
    with pytest.raises(ConfigError, match=message):
        tried()


@pytest.mark.parametrize(
    ("hook", "result"),
    [
        (ADDED, "None if site.layer else -self.strength * state"),
        (ADDED, "Dot(self.strength * site.q, site.k)"),
        ("positions(self, state, p)", "p.expand(state.size(0), -1, -1)"),
        ("positions(self, state, p)", "0 * p"),
        ("tokens(self, state, x)", "2 * x"),
        (VISIBLE, "state[:, :, -n:] < 9"),
        ("loss(self, state)", "self.strength.sum()"),
    ],
)
def test_what_a_hook_may_give_passes(own, hook, result):
    own(with_hook(hook, result))
    assert tried() == []


def test_a_hook_with_other_parameters_is_refused(own):
    own(changed("def added(self, state: Tensor, ", "def added(self, "))
    with pytest.raises(ConfigError, match=r"NearParent\.added has to take \(state, site\)$"):
        tried()


def test_a_feature_that_is_not_asked_for_is_named(own):
    own(changed('needs = ("parent_middle",)', 'needs = ("depth",)'))
    with pytest.raises(ConfigError, match=r"prepare reads .* 'parent_middle', which is not in ne"):
        tried()


def test_an_error_of_the_code_itself_goes_on_as_it_is(own):
    own(changed("-self.strength", "-self.strenght"))
    with pytest.raises(AttributeError, match="strenght"):
        tried()


# Doubts.

LEARNS_NOT = r"strength has no gradient on the lines of the trial$"


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        (("[layer]", "[]"), [r"NearParent\.added is never called, since", LEARNS_NOT]),
        (("def added", "def add"), [r"changes nothing: .*; did you mean added by", LEARNS_NOT]),
        (("-self.strength *", "-self.strength.detach() *"), [LEARNS_NOT]),
        (("-self.strength *", "-(0 * self.strength) *"), [LEARNS_NOT]),
        (
            ("nn.Parameter(torch.full((n_heads, 1, 1), start))", "torch.ones(1).requires_grad_()"),
            [r"strength is no nn\.Parameter, .*, so it neither learns nor is stored$"],
        ),
    ],
)
def test_what_is_doubtful_is_said(own, changes, messages):
    own(changed(*changes))
    found = tried()
    assert len(found) == len(messages)
    for line, message in zip(found, messages, strict=True):
        assert line.startswith("variant near-parent: ")
        assert re.search(message, line)


def test_a_parameter_whose_factor_begins_at_zero_learns(own):
    full = "nn.Parameter(torch.full((n_heads, 1, 1), start))"
    gate = f"{full}\n        self.gate = nn.Parameter(torch.zeros(1))"
    own(changed(full, gate, "-self.strength * state", "-self.strength * self.gate * state"))
    assert tried() == []


# Models that compute something else in translation than in training.

OTHERS = r"what the encoder makes of a sentence depends on others in its batch, or on padding$"
UNSTORED = r"a value drawn at random is not an nn\.Parameter, so no run stores it$"
RANDOM = "the same input gives another result the second time: something is random, such as F.dr"
CONSTANT = "[layer])\n        self.constant = torch.rand(1)\n"
BODY, BEGIN = "        return -self", "[layer])\n"  # of the example's `added`, and of its __init__
CACHE = """\
        if not hasattr(self, "before"):
            self.before = {}
        parent = self.before.setdefault(parent.shape, parent)
        j ="""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("j - parent[", "j - parent[:1]["), OTHERS),
        ((".abs()[:, None]", ".abs()[:, None] * parent.size(1)"), OTHERS),
        (("* state", "* nn.functional.dropout(state, 0.5)"), RANDOM),
        (
            ("[layer])\n", CONSTANT, "* state", "* state * self.constant"),
            UNSTORED,
        ),
        (
            (
                "[layer])\n",
                "[layer])\n        self.register_buffer('n', torch.zeros(1))\n",
                "        return -self",
                "        self.n += 1\n        return -self",
            ),
            r"NearParent\.n changes in training, but runs store parameters alone$",
        ),
        (("        j =", CACHE), OTHERS),
        (
            (
                BEGIN,
                f"{BEGIN}        self.n = 0\n",
                BODY,
                f"        self.n += self.training\n{BODY}",
            ),
            r"NearParent\.n changes in training, but runs store parameters alone$",
        ),
        (
            (BODY, f"        torch.manual_seed(1)\n{BODY}"),
            r"a hook draws or seeds random numbers outside of training$",
        ),
        (("start),)", "start),) * 2"), r"one modifier serves twice: make one for each stack and"),
        (
            (BEGIN, f"{BEGIN}        self.more = nn.LazyLinear(128)\n"),
            r"a parameter has no shape yet: give its module all sizes in __init__$",
        ),
        (
            (BODY, f"        self.late = nn.Parameter(state[0])\n{BODY}"),
            r"a parameter is made in a hook: make it in __init__$",
        ),
        (
            ('    needs = ("parent_middle",)', '    needs = learns = ("parent_middle",)'),
            r"NearParent\.prepare reads 'parent_middle' of `learns`, which translation has not",
        ),
    ],
)
def test_what_makes_another_model_is_refused(own, changes, message):
    own(changed(*changes))
    with pytest.raises(ConfigError, match=rf"variant near-parent: {message}"):
        tried()


NUMPY = "import functools\nimport numpy as np\n\n"
DRAWN = {
    "NumPy": f"{NUMPY}DRAWN = np.random.rand()\n",
    "a generator": f"{NUMPY}DRAWN = np.random.default_rng().random()\n",
    "torch": "DRAWN = torch.rand(1)\n",
    "random": "import random\nDRAWN = random.random()\n",
    "a cache": f"{NUMPY}@functools.cache\ndef drawn():\n    return np.random.rand()\n",
}


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("seeded", [False, True])
def test_what_is_drawn_outside_of_init_is_refused_unless_it_is_seeded(own, kind, seeded):
    """Each process runs the file anew, and would get another model."""
    outside, value = DRAWN[kind], "drawn()" if kind == "a cache" else "DRAWN"
    if seeded:
        seeds = "import random\nimport numpy as np\nrandom.seed(1)\nnp.random.seed(1)\n"
        outside = seeds + "torch.manual_seed(1)\n" + outside.replace("rng()", "rng(1)")
    if seeded and kind == "a cache":
        outside = outside.replace("    return", "    np.random.seed(1)\n    return")
    own(changed(CLASS, outside + CLASS, "* state", f"* state * {value}"))
    with nullcontext() if seeded else pytest.raises(ConfigError, match=UNSTORED):
        assert tried() == []


def test_a_file_that_runs_twice_speaks_once(own, capfd):
    before = sys.modules.get("synmt_own_variants")
    own(changed(CLASS, f"print('hello')\n{CLASS}"))
    assert tried() == []
    assert capfd.readouterr() == ("", "hello\n")
    loaded = sys.modules["synmt_own_variants"]
    assert loaded is not before
    assert tried() == []
    assert sys.modules["synmt_own_variants"] is loaded


def test_a_file_that_does_not_run_twice_is_tried_without(own):
    once = (
        "if hasattr(torch, 'mine'):\n    raise ValueError('registered already')\ntorch.mine = 1\n"
    )
    own(changed(CLASS, once + CLASS))
    try:
        (doubt,) = tried()
    finally:
        del torch.mine
    assert "outside of functions are not found, as it runs only once: " in doubt
    assert doubt.endswith("ValueError: registered already")


def with_loss(loss):
    """The example, whose `prepare` returns the side, too, for a loss of it."""
    prepared = "(j - parent[..., None]).abs()[:, None]"
    return changed(
        *(
            f"return {prepared}",
            f"return side, {prepared}",
            "strength * state",
            "strength*state[1]",
        ),
        *(BEFORE_BUILDER, f"    def loss(self, both):\n        {loss}{BEFORE_BUILDER}"),
    )


BEFORE_BUILDER = "\n\ndef near_parent("
PAIRS = """side, state = both
        shown = (side.ids != 1).float()
        pairs = shown[:, :, None] * shown[:, None] * state[:, 0]
        pairs = pairs[:, None] * self.strength.exp()
        """


@pytest.mark.parametrize(
    ("loss", "fits"),
    [
        ("return (self.strength * both[1]).sum()", False),
        ("return (self.strength * both[1]).mean()", False),
        ("return (self.strength * both[1]).mean() if self.training else None", False),
        (f"{PAIRS}return pairs.sum()", True),
        (f"{PAIRS}return -pairs.sum() if self.training else None", True),
        (f"{PAIRS}return pairs.sum() + self.strength.square().mean()", True),
        (f"{PAIRS}return pairs.sum() / len(state)", False),
        (f"{PAIRS}return pairs.sum() / shown.sum()", False),
        (
            f"{PAIRS}return nn.functional.dropout(pairs, 0.1, self.training).sum()",
            True,
        ),
        ("return 0.1 * self.strength.square().sum()", True),
        ("return None", True),
    ],
)
def test_a_loss_is_a_sum_over_tokens_without_padding(own, loss, fits):
    own(with_loss(loss))
    message = r"near-parent: the loss of a batch is not the sum of those of its sentences alone: "
    with nullcontext() if fits else pytest.raises(ConfigError, match=message):
        assert tried() == []


CLASS = "class NearParent(Modifier):\n"
KEPT = {  # where a count of updates is kept, and how training changes it
    "NearParent.n[0]": ("self.n = [0]", "", "self.n[0] += 1", "self.n[0]"),
    "NearParent.n['a']": ("self.n = {'a': 0}", "", "self.n['a'] += 1", "self.n['a']"),
    "NearParent.n[1].n": ("self.n = (9, Count())", "", "self.n[1].n += 1", "self.n[1].n"),
    "NearParent.n.n": ("self.n = Slotted(0)", "", "self.n.n += 1", "self.n.n"),
    "NearParent.n": ("type(self).n = 0", "", "type(self).n += 1", "self.n"),
    "NearParent.mean": (
        *("self.mean = np.zeros(1)", ""),
        *("self.mean = 0.999 * self.mean + 0.001", "float(self.mean[0])"),
    ),
    "UPDATES": ("pass", "UPDATES = 0\n", "global UPDATES; UPDATES += 1", "UPDATES"),
    "NUMBERS": ("pass", "NUMBERS = torch.zeros(1)\n", "NUMBERS.add_(1)", "NUMBERS.item()"),
    "count.n[0]": ("pass", "def count(n=[0]):\n    n[0] += 1\n", "count()", "0"),
    "what it computes": (
        *("pass", "import itertools\n\nCOUNT = iter(itertools.count())\nSEEN = set()\n"),
        *("SEEN.add(next(COUNT))", "len(SEEN)"),
    ),
}
COUNT = "import numpy as np\n\n\nclass Count:\n    n = 0\n\n\n"
COUNT += (
    "import dataclasses\n\n\n@dataclasses.dataclass(slots=True)\nclass Slotted:\n    n: int\n\n\n"
)


def keeping(begin, outside, step, value):
    """The example with a bias that is warmed up by a value which training changes."""
    step = f"        if self.training:\n            {step}\n"
    return changed(
        *(CLASS, COUNT + outside + CLASS, BEGIN, f"{BEGIN}        {begin}\n", BODY, step + BODY),
        *("* state", f"* state * min(1, ({value}) / 1000)"),
    )


@pytest.mark.parametrize("name", KEPT)
def test_what_training_changes_is_found_wherever_it_is_kept(own, name):
    own(keeping(*KEPT[name]))
    with pytest.raises(ConfigError, match=rf"near-parent: {re.escape(name)} changes in training, "):
        tried()


@pytest.mark.parametrize(
    ("begin", "outside", "step"),
    [
        ("self.made = {}", "", "self.made.setdefault(site.q.size(2), state.size(1))"),
        ("self.made = {'n': 0}", "", "self.made['n'] = site.q.size(2)"),
        ("pass", "import functools\n@functools.cache\ndef twice(n): return 2 * n\n", "twice(3)"),
        ("pass", "def twice(n, made={}): return made.setdefault(n, 2 * n)\n", "twice(3)"),
        ("self.state = None", "", "self.state = state"),
        ("self.nan = {0: torch.full((2,), torch.nan), 1: torch.nan}", "", "pass"),
    ],
)
def test_a_cache_that_a_second_pass_leaves_as_it_is_passes(own, begin, outside, step):
    own(keeping(begin, outside, step, "1000"))
    assert tried() == []


def test_what_grows_in_training_is_doubtful(own):
    own(keeping("self.seen = []", "", "self.seen.append(state.size(1))", "1000"))
    assert tried() == [
        "variant near-parent: NearParent.seen gets another length with each pass, but runs store "
        "parameters alone"
    ]


def test_a_hook_that_changes_what_it_is_given_is_refused(own):
    own(with_hook("positions(self, state, p)", "p.mul_(1.1)"))
    with pytest.raises(ConfigError, match=r"the second time: .*, or changed in place$"):
        tried()


@pytest.mark.parametrize("what", ["features['parent_middle']", "ids", "pad"])
def test_a_batch_that_prepare_changes_in_place_is_refused(own, what):
    own(changed("        j =", f"        side.{what}[:, 0] = 1\n        j ="))
    message = rf"NearParent\.prepare changes {re.escape(f'side.{what}')} in place, which others"
    with pytest.raises(ConfigError, match=message):
        tried("near-parent+dep")


@pytest.mark.parametrize("kind", ["[{}]", "{{0: {}}}", "({},)"])
@pytest.mark.parametrize("what", ["nn.Linear(1, 1)", "torch.zeros(1, requires_grad=True)"])
def test_what_learns_in_a_list_is_said_to_be_lost(own, kind, what):
    own(changed("[layer])\n", f"[layer])\n        self.many = {kind.format(what)}\n"))
    (found,) = tried()
    assert "NearParent.many is no nn.Parameter, nn.ParameterList or nn.ModuleList, so" in found


def test_what_is_drawn_at_random_in_training_or_as_a_parameter_passes(own):
    drawn = "torch.full((n_heads, 1, 1), start) + torch.rand(n_heads, 1, 1)"
    own(
        changed(
            *("torch.full((n_heads, 1, 1), start)", drawn),
            *("* state", "* nn.functional.dropout(state, 0.5, self.training)"),
        )
    )
    assert tried() == []


DECODER = b"""
import torch
from torch import nn
from synmt_cli.core.model.modifier import Modifier
from synmt_cli.core.variants.table import Variant


class Near(Modifier):
    def __init__(self, spec):
        super().__init__(range(spec.n_layers))
        self.strength = nn.Parameter(torch.ones(spec.size.n_heads, 1, 1))

    def prepare(self, side):
        return torch.arange(side.ids.size(1))

    def added(self, state, site):
        t = state[-site.q.size(2) :, None]
        return -self.strength * (t - state).abs()


def near(spec):
    return (Near(spec),)


VARIANTS = [Variant("near", "", "", decoder="near")]
"""


@pytest.mark.parametrize("variant", ["near", "rel+near", "near+bitran", "linearized+near"])
def test_a_decoder_that_reads_distances_passes(own, variant):
    own(DECODER)
    assert tried(variant) == []


@pytest.mark.parametrize(
    ("loss", "fits"),
    [
        ("(s != 1).sum()", True),
        ("len(s) * s.size(1)", False),
        ("(s != 1).float().mean()", False),
    ],
)
def test_a_loss_of_a_decoder_leaves_padding_out(own, loss, fits):
    text = changed("torch.arange(side.ids.size(1))", "side.ids", text=DECODER)
    text = changed("state[-site.q.size(2) :, None]", "torch.zeros(1)", text=text)
    text = changed("(t - state).abs()", "t", text=text)
    own(
        changed(
            "def added",
            f"def loss(self, s):\n        return self.strength.sum() * {loss}\n\n    def added",
            text=text,
        )
    )
    with nullcontext() if fits else pytest.raises(ConfigError, match="near: the loss of a batch"):
        assert tried("near") == []


INPUTS = "def inputs(self, state, x):\n        return {}\n\n    def added"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("[-site.q.size(2) :, None]", "[: site.q.size(2), None]"), r"search, where the only"),
        (("[-site.q.size(2) :, None]", "[:, None]"), r"search, .*\(.* size .*\)$"),
        (("(t - state).abs()", "state.square()"), r"in search, where the only query is"),
        (("def added", INPUTS.format("x + x.mean(1, True)")), r"decoder sees tokens that come"),
        (("def added", INPUTS.format("x + x.roll(-1, 1)")), r"decoder sees tokens that come"),
        (("def added", INPUTS.format("x * len(x)")), r"what the decoder makes of a sent"),
        (("def added", INPUTS.format("x + 0.1 * x[:1]")), r"what the decoder makes of a sentence"),
    ],
)
def test_a_decoder_that_is_another_in_translation_is_refused(own, changes, message):
    own(changed(*changes, text=DECODER))
    with pytest.raises(ConfigError, match=rf"variant near: .*{message}"):
        tried("near")
