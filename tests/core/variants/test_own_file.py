"""Variants of a file of one's own: which are known, and which files are refused."""

from __future__ import annotations

import re
from contextlib import nullcontext

import pytest
import torch
from support.models import make, small
from support.own_variants import EXAMPLE, changed
from support.parsed_sources import LABELS, TREES, source

from synmt_cli.core.analysis.witness import witnessed
from synmt_cli.core.run.settings import named
from synmt_cli.core.transitions.grammar import FEATURES
from synmt_cli.core.variants import defaults, own_file, plan
from synmt_cli.core.variants.own_file import known
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import ConfigError, ReadError, UsageError

SIZE = small()
SETTING = StackSpec(SIZE, SIZE.encoder_layers, len(LABELS))


def test_a_variant_of_the_file_is_known_like_any_other(own):
    own(EXAMPLE)
    assert [*known()][-1] == "near-parent"
    assert defaults(known()["near-parent"]) == {"layer": 0, "start": 0.1}
    assert [one.key for one in named("near-parent")] == ["near-parent.layer", "near-parent.start"]
    (first, second) = plan("near-parent+rel").encoder(SETTING, {"near-parent": {"start": 3}})
    assert (first.name, second.name) == ("near-parent", "rel")
    assert first.strength.unique().tolist() == [3]
    with pytest.raises(UsageError, match=r"near-parent\.start must be at least 0"):
        plan("near-parent").encoder(SETTING, {"near-parent": {"start": -1}})
    with pytest.raises(UsageError, match="did you mean 'near-parent'"):
        plan("nearparent")


def test_without_a_file_there_are_those_of_synmt(own):
    own(None)
    assert not any(variant.own for variant in known().values())
    with pytest.raises(UsageError, match="no variant 'near-parent'"):
        plan("near-parent")


def test_the_example_computes_its_equation(own):
    """s_tj - w_h |j - p_t|, against loops over heads and tokens."""
    own(EXAMPLE)
    model = make(SIZE, plan("near-parent").encoder(SETTING, {}))
    batch, before, after = source(), {}, {}
    with witnessed(model.encoder, before.setdefault, after.setdefault), torch.no_grad():
        model.encode(batch)
    strength, parents = model.encoder.modifiers[0].strength, batch.features["parent_middle"]
    for b, tree in enumerate(TREES):
        for h in range(SIZE.n_heads):
            for t in range(len(tree.piece_word) + 1):
                for j in range(len(tree.piece_word) + 1):
                    expected = before[0][b, h, t, j] - strength[h] * abs(j - parents[b, t])
                    assert after[0][b, h, t, j].item() == pytest.approx(expected.item(), abs=1e-9)
    assert torch.equal(before[1], after[1])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "import torch\n",
            "import torhc\n",
            r":14: ModuleNotFoundError: No module named 'torhc'; the f",
        ),
        ("def near_parent(", "def near_parent((", r":\d+: not Python: '\(' was never closed$"),
        ("import torch\n", "import sys\n\nsys.exit()\n", r":16: SystemExit: $"),
        ("VARIANTS =", "VARIANT =", r": VARIANTS has to be a list of Variant$"),
        ("VARIANTS = [", "VARIANTS = [1,", r": VARIANTS has to be a list of Variant$"),
        ('"near-parent"', '"gps"', r": variant 'gps': synmt has one of this name$"),
        ('"near-parent"', '"a+b"', r": variant 'a\+b': a name has small letters, digits"),
        ('"near-parent"', '"training"', r": variant 'training': config\.toml has another table"),
        ("Variant(\n", 'Variant("near-parent", "", ""), Variant(\n', r"the file has two of this"),
        ('encoder="near_parent"', 'encoder="near"', r": the file has no function 'near'$"),
        ('encoder="near_parent"', 'encoder="Variant"', r": the file has no function 'Variant'$"),
        ('encoder="near_parent"', "decoder=near_parent", r"decoder has to be the name of a fu"),
        ('encoder="near_parent"', 'data="multitask"', r": data is for variants of synmt"),
        ("    spec: StackSpec,\n", "", r":43: .*: its first parameter has to be the StackSpec$"),
        ("    *,\n", "", r":43: .*: near_parent: layer has to come after \*"),
        ('Annotated[int, "0 is', 'Annotated[dict, "0 is', r"layer needs the form Annotated"),
        ('Annotated[int, "0 is the bottom layer"]', "int", r"layer needs the form Annotated"),
        ("Bounds(0)]", "0]", r"start needs the form Annotated"),
        ("] = 0.1", "]", r": start needs a default$"),
        ("] = 0.1", "] = -0.1", r": start: its default: must be at least 0, not -0\.1$"),
        ("] = 0.1", '] = "low"', r": start: its default: expected a number, not 'low'$"),
    ],
)
def test_a_file_that_defines_no_variants_is_refused_with_its_place(own, old, new, message):
    path = own(changed(old, new))
    with pytest.raises(ConfigError, match=re.escape(str(path)) + ".*" + message):
        known()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('needs = ("parent_middle",)', 'needs = "parent_middle"', r"needs is 'parent_middle', not"),
        ('("parent_middle",)', '("parents",)', r"needs is \('parents',\), not a tuple of these: d"),
        (
            "    needs =",
            '    learns = ("word",)\n    needs =',
            r"learns is \('word',\), not a tuple",
        ),
        ("[layer]", "[layer + 2]", r"changes layers \[2\], of 0 to 1$"),
        ("source_trees=True", "source_trees=False", r"reads trees: its Variant needs source_tr"),
        ("return (Near", "return [1, Near", r"has to return a tuple of modifiers"),
        ("start),)", "start))", r"has to return a tuple of modifiers"),
    ],
)
def test_a_builder_that_gives_what_is_no_variant_is_refused(own, old, new, message):
    text = changed(old, new)
    own(text.replace(b"start),)", b"start)]") if "[1, " in new else text)
    with pytest.raises(ConfigError, match=r"variant near-parent: .*" + message):
        plan("near-parent").encoder(SETTING, {})


@pytest.mark.parametrize(
    ("flags", "needs", "problem"),
    [
        ("transitions=True", FEATURES, r"needs transitions=True and rereads=True$"),
        ("rereads=True", FEATURES, r"needs transitions=True and rereads=True$"),
        ("transitions=True, rereads=True", ("arc_label",), r"not all of these: arc, head_begin, "),
        ("transitions=True, rereads=True", ("depth",), r"not a tuple of these: arc, head_begin, "),
        ("transitions=True, rereads=True", FEATURES, None),
        ("rereads=False", (), None),
    ],
)
def test_a_decoder_reads_the_whole_tree_so_far_or_none(own, flags, needs, problem):
    """A part of the tree has no meaning, and without rereads arcs would reveal words to come."""
    text = changed("source_trees=True", flags).replace(b"encoder=", b"decoder=")
    own(text.replace(b'needs = ("parent_middle",)', f"needs = {needs!r}".encode()))
    with pytest.raises(ConfigError, match=problem) if problem else nullcontext():
        assert plan("near-parent").decoder(SETTING, {})


@pytest.mark.parametrize(("name", "what"), [("none.py", "No such file"), ("", "it is a folder")])
def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch, name, what):
    monkeypatch.setenv(own_file.VARIABLE, str(tmp_path / name))
    with pytest.raises(ReadError, match=f"^SYNMT_VARIANTS: .*{what}"):
        known()


def test_what_the_file_prints_is_no_result(own, capfd):
    own(changed("import torch\n", "import torch\n\nprint('hello')\n"))
    known()
    assert capfd.readouterr() == ("", "hello\n")


def test_a_whole_number_is_a_real_one_where_an_option_is(own):
    own(changed("= 0.1,", "= 1,"))
    (modifier,) = plan("near-parent").encoder(SETTING, {})
    assert modifier.strength.dtype == torch.float32


def test_no_compiled_copy_is_left(own):
    path = own(EXAMPLE)
    known()
    assert [one.name for one in path.parent.iterdir()] == [path.name]
