"""`synmt settings` says what the declarations, the presets and `train --set` say."""

import csv
import io
import json

import pytest

from synmt_cli import cli
from synmt_cli.core.options import options
from synmt_cli.core.run import settings
from synmt_cli.core.run.config import SECTIONS, flatten, from_settings, resolve
from synmt_cli.core.run.declared import declared
from synmt_cli.core.run.presets import PRESETS
from synmt_cli.core.variants.table import VARIANTS
from synmt_cli.errors import UsageError
from synmt_cli.formats.reports.settings import shown


@pytest.fixture
def printed(capfdbinary):
    """What `synmt settings ...` prints, run in this process."""

    def start(*arguments, status=0):
        capfdbinary.readouterr()
        found = cli._run(["settings", *arguments])
        out, err = capfdbinary.readouterr()
        assert found == status, err
        return (err if status else out).decode()

    return start


@pytest.mark.parametrize("name", VARIANTS)
def test_options_read_from_a_text_are_those_of_the_builders(name):
    assert declared(VARIANTS[name]) == VARIANTS[name].options()


def test_every_setting_is_listed_with_all_that_is_declared(printed):
    owners = {**SECTIONS, **{name: one for name, one in VARIANTS.items() if one.options()}}
    rows = {one["setting"]: one for one in json.loads(printed("--format", "json"))}
    expected = {"variant", "preset"}
    for section, owner in owners.items():
        of = owner.options() if section in VARIANTS else options(owner)
        for name, option in of.items():
            row = rows[f"{section}.{name}"]
            assert row["meaning"] == option.meaning
            default = list(option.default) if isinstance(option.default, tuple) else option.default
            assert row["default"] == default
            expected.add(f"{section}.{name}")
    assert rows.keys() == expected


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_listed_as_it_resolves(preset):
    """Its values, and the defaults of what it does not set, are the configuration of a run."""
    made = flatten(resolve(None, preset, []).to_toml())
    listed = {one.key: one.presets[preset] for one in settings.of_preset(preset)}
    given = {key: list(v) if isinstance(v, tuple) else v for key, v in listed.items()}
    assert given.items() <= made.items()
    known = {one.key: one.option.default for one in settings.every()}
    rest = {key: made[key] for key in made.keys() - given.keys() - {"preset", "variant"}}
    assert rest == {
        key: list(known[key]) if isinstance(known[key], tuple) else known[key] for key in rest
    }


@pytest.mark.parametrize("one", settings.every(), ids=lambda one: one.key)
def test_a_default_can_be_set_as_it_is_printed(one):
    if one.section:
        variant = one.section if one.section in VARIANTS else "vanilla"
        resolve(variant, "base", from_settings([f"{one.key}={shown(one.option.default)}"]))


def test_a_name_is_a_setting_a_section_a_variant_or_a_preset(printed):
    text = printed("training.lr")
    assert text == printed("lr")
    assert text.startswith(
        "training.lr = 0.0007\n    peak learning rate, then inverse square root\n"
    )
    assert "    0.003: tiny\n" in text
    assert printed("clip").count("clip = ") == 3
    assert [line for line in printed("dep+rel").splitlines() if line[0:1] > " "] == [
        *("dep.clip = 2", "dep.keys = true", "dep.values = true"),
        *("rel.clip = 16", "rel.keys = true", "rel.values = true", "rel.stack = both"),
    ]
    assert "training.warmup = 300\n" in printed("tiny")
    assert "a whole number, at least 0; default 4000\n" in printed("tiny")
    assert len(printed("base").split("\n\n")) == len(printed("model", "training").split("\n\n"))


def test_tables_have_a_column_for_each_preset_that_sets_something(printed):
    [row] = csv.DictReader(io.StringIO(printed("--format", "csv", "training.batch_sentences")))
    assert (row["default"], row["paper-dep-abs"], row["paper-dep-ablation-k"]) == (
        "0",
        "256",
        "100",
    )
    assert "tiny" not in row
    [_, row] = printed("--format", "tsv", "vanilla", "training.betas").splitlines()
    assert row.split("\t")[:3] == [
        "training.betas",
        "[0.9, 0.98]",
        "a list of 2 numbers from 0 to 0.999999",
    ]
    assert printed("--format", "markdown", "model").startswith(
        "| setting | default | tiny | small |"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("modle", "no setting, section, variant or preset 'modle'; did you mean 'model'?"),
        ("xyzzy", "'xyzzy'; synmt settings without a name lists all"),
        ("auto", "auto is one of base, small, tiny, by data and device; name one of them"),
    ],
)
def test_another_name_is_refused_with_the_nearest(printed, name, message):
    assert message in printed(name, status=2)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.dropuot=1", "did you mean 'dropout'? (see synmt settings model)"),
        ("heads=1", "did you mean pascal.heads? (see synmt settings)"),
        ("droput=1", "did you mean dropout? (see synmt settings)"),
        ("dropout=7", "must be at most 1, not 7 (see synmt settings model.dropout)"),
        ("modle.dropout=1", "did you mean 'model'? (see synmt settings)"),
    ],
)
def test_a_wrong_setting_points_here(setting, message):
    with pytest.raises(UsageError) as caught:
        resolve("vanilla", "base", from_settings([setting]))
    assert message in str(caught.value)
