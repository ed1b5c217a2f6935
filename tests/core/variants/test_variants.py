"""The table of variants, and what their options promise to a user."""

from __future__ import annotations

import ast
import inspect
import math
from pathlib import Path

import pytest
from support.models import make, small

from synmt_cli.core import variants
from synmt_cli.core.model.modifier import Modifier
from synmt_cli.core.run.config import INFORMATION, SECTIONS
from synmt_cli.core.variants import defaults, own_file, plan, table
from synmt_cli.core.variants.pascal import pascal
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.core.variants.table import VARIANTS
from synmt_cli.errors import UsageError

SIZE = small()
SETTING = StackSpec(SIZE, SIZE.encoder_layers)
each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda v: v.name)


@each_variant
def test_a_variant_builds_with_its_defaults(variant):
    one = plan(variant.name)
    encoder, decoder = one.encoder(SETTING, {}), one.decoder(SETTING, {})
    assert all(isinstance(m, Modifier) for m in (*encoder, *decoder))
    assert all(layer < SIZE.encoder_layers for m in encoder for layer in m.layers)
    make(SIZE, encoder, decoder)


@each_variant
def test_a_variant_says_what_it_is_and_whose(variant):
    assert variant.what
    assert variant.paper[-4:].isdigit()
    assert VARIANTS[variant.name] is variant


@each_variant
def test_options_are_keyword_only_with_defaults_and_documented(variant):
    for build in variant.builders():
        setting, *options = inspect.signature(build).parameters.values()
        assert setting.default is setting.empty
        for option in options:
            assert option.kind is option.KEYWORD_ONLY
            assert option.default is not option.empty
            assert variant.options()[option.name].meaning


@each_variant
def test_every_option_may_be_given_with_its_default(variant):
    options = {variant.name: defaults(variant)}
    plan(variant.name).encoder(SETTING, options)
    plan(variant.name).decoder(SETTING, options)


def test_vanilla_changes_nothing():
    assert plan("vanilla").encoder(SETTING, {}) == []
    assert plan("vanilla").decoder(SETTING, {}) == []


def test_pascal_changes_the_encoder_alone():
    (modifier,) = plan("pascal").encoder(SETTING, {"pascal": {"heads": 1, "layer": 1}})
    assert modifier.heads == {1: 1}
    assert plan("pascal").decoder(SETTING, {}) == []


def test_names_join_in_the_order_given():
    assert [v.name for v in plan("vanilla+pascal").variants] == ["vanilla", "pascal"]
    assert [v.name for v in plan("pascal+vanilla").variants] == ["pascal", "vanilla"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("pascla", r"no variant 'pascla'; did you mean 'pascal'"),
        ("xyzzy", r"no variant 'xyzzy'; choose from vanilla, pascal"),
        ("", r"no variant ''; choose from"),
        ("pascal+", r"no variant ''"),
        ("Pascal+vanilla", r"no variant 'Pascal'; did you mean 'pascal'"),
        ("pascal+pascal", r"'pascal' is named twice in 'pascal\+pascal'"),
    ],
)
def test_an_unknown_combination_is_a_usage_error(expression, message):
    with pytest.raises(UsageError, match=message):
        plan(expression)


@each_variant
def test_a_name_can_be_joined_and_is_of_one_variant(variant):
    assert own_file.NAME.fullmatch(variant.name)
    assert variant.name not in own_file.RESERVED
    assert [one.name for one in table._TABLE].count(variant.name) == 1


def test_what_config_toml_has_is_no_name_of_a_variant():
    assert {*SECTIONS, *INFORMATION, "variant", "preset"} == {*own_file.RESERVED}


@pytest.mark.parametrize("module", [variants, table, own_file])
def test_the_table_itself_is_read_without_torch(module):
    """`synmt variants` and --help read it: only the builders' modules may import torch."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {a.name for n in top for a in n.names} | {getattr(n, "module", "") for n in top}
    assert not any("torch" in name or "model" in name for name in names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 4}, r"pascal\.heads must be within 0\.\.3, not 4"),
        ({"heads": -1}, r"pascal\.heads must be within 0\.\.3, not -1"),
        ({"heads": [1, 4]}, r"pascal\.heads must be within 0\.\.3, not \[1, 4\]"),
        ({"heads": [1, 1, 1]}, r"pascal\.heads .* 3 layers.* 2"),
        ({"heads": [0, 2], "layer": 1}, r"pascal\.layer .*list"),
        ({"layer": 2}, r"pascal\.layer must be within 0\.\.1, not 2"),
        ({"layer": -1}, r"pascal\.layer must be within 0\.\.1, not -1"),
        ({"variance": 0.0}, r"pascal\.variance must be at least 0\.001"),
        ({"variance": -1.0}, r"pascal\.variance must be at least 0\.001"),
        ({"variance": math.nan}, r"pascal\.variance must be at least 0\.001"),
        ({"variance": math.inf}, r"pascal\.variance must be at least 0\.001"),
        ({"ignore": 1.1}, r"pascal\.ignore must be within 0\.\.1, not 1\.1"),
        ({"ignore": -0.1}, r"pascal\.ignore must be within 0\.\.1"),
        ({"ignore": math.nan}, r"pascal\.ignore must be within 0\.\.1"),
    ],
)
def test_options_out_of_range_are_usage_errors(options, message):
    with pytest.raises(UsageError, match=message):
        plan("pascal").encoder(SETTING, {"pascal": options})


@pytest.mark.parametrize("options", [{"heads": 3}, {"layer": 1}, {"ignore": 1.0}, {"ignore": 0.0}])
def test_the_ends_of_ranges_are_allowed(options):
    assert len(pascal(SETTING, **options)) == 1


def test_defaults_are_the_papers():
    """Layer 1, variance 1, no ignoring; two heads as for NC11 En-De."""
    (modifier,) = pascal(SETTING)
    assert (modifier.heads, modifier.variance) == ({0: 2}, 1.0)
    assert (modifier.ignore, modifier.parent_only) == (0.0, False)
    assert modifier.needs == ("parent_middle",)
