"""Layers of settings: which one wins, and how a wrong one is refused."""

import os

import pytest

from synmt_cli.core.run.config import (
    SettingsLayer,
    flatten,
    from_file,
    from_settings,
    resolve,
)
from synmt_cli.core.run.presets import PRESETS
from synmt_cli.errors import ConfigError, ReadError, UsageError


@pytest.mark.parametrize(("name", "kind"), [("/dev/zero", "a device"), ("pipe", "a pipe")])
def test_only_a_regular_file_is_a_configuration(tmp_path, monkeypatch, name, kind):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(ReadError, match=f"cannot read {name}: it is {kind}, not a regular file"):
        from_file(name)


def test_later_layers_win(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("[model]\ndropout = 0.2\nd_ff = 64\n")
    layers = [from_file(str(file)), *from_settings(["model.dropout=0.4"])]
    found = resolve("vanilla", "tiny", layers)
    assert (found.model.dropout, found.model.d_ff, found.model.d_model) == (0.4, 64, 128)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_resolves_and_survives_a_round_trip(preset):
    found = resolve(None, preset, [])
    again = resolve(None, "base", [SettingsLayer(found.to_toml(), "x.toml", "x")])
    assert flatten(again.to_toml()) == flatten(found.to_toml()) | {"preset": "base"}


# Table 2 of Bugliarello and Okazaki (2020), with steps and dropout from its section on training.
TABLE_2 = {
    "nc11-en-de": (0.997, 2, 0.4, 0.3, 20_000),
    "nc11-de-en": (0.997, 8, 0.0, 0.3, 20_000),
    "wmt18-en-tr": (0.98, 7, 0.3, 0.3, 20_000),
    "wmt16-en-de": (0.98, 5, 0.0, 0.1, 100_000),
    "wmt17-en-de": (0.997, 7, 0.3, 0.1, 100_000),
    "wat-en-ja": (0.997, 7, 0.0, 0.1, 100_000),
}


def test_a_pair_of_numbers_may_be_whole():
    """Adam takes no integers."""
    betas = resolve(None, "tiny", from_settings(["training.betas=[0, 0.98]"])).training.betas
    assert (betas, *map(type, betas)) == ((0.0, 0.98), float, float)


@pytest.mark.parametrize("row", TABLE_2)
def test_paper_presets_are_the_rows_of_table_2(row):
    beta2, heads, ignore, dropout, steps = TABLE_2[row]
    found = resolve(None, f"paper-pascal-{row}", [])
    assert (found.variant, found.training.lr, found.training.betas) == (
        "pascal",
        7e-4,
        (0.9, beta2),
    )
    options = found.options["pascal"]
    assert (options["heads"], options["ignore"]) == (heads, ignore)
    assert (found.model.dropout, found.training.max_steps) == (dropout, steps)
    assert (found.model.d_model, found.model.encoder_layers, found.model.n_heads) == (512, 6, 8)
    assert found.training.batch_tokens * found.training.accumulate == 32 * 1024


@pytest.mark.parametrize("corpus", ["nc11-en-de", "nc11-de-en"])
def test_rows_of_table_7_are_table_2_but_for_one_option(corpus):
    own = resolve(None, f"paper-pascal-{corpus}", [])
    changed = {f"layer-{n}": ("layer", n - 1) for n in range(2, 7)}
    changed |= {f"variance-{n}": ("variance", n) for n in (4, 9, 16, 25)}
    changed |= {"variance-parent-only": ("parent_only", True)}
    for name, (option, value) in changed.items():
        row = resolve(None, f"paper-pascal-{name}-{corpus}", [])
        assert row.options == {"pascal": {**own.options["pascal"], option: value}}
        assert (row.model, row.training) == (own.model, own.training)


def test_rows_of_table_3_of_gps_are_its_model_but_for_the_layer():
    own = resolve(None, "paper-gps-nc11-de-en", [])
    for layer in (1, 2, 3, 4, 5, "all"):
        row = resolve(None, f"paper-gps-layer-{layer}", [])
        assert row.options == {"gps": {**own.options["gps"], "layer": layer}}
        assert (row.model, row.training) == (own.model, own.training)


def test_a_presets_variant_gives_way_to_the_one_named():
    assert resolve("vanilla", "paper-pascal-nc11-en-de", []).options == {"vanilla": {}}


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("[model]\ndropuot = 1\n", ":2:", "did you mean 'dropout'?"),
        ("\n[model]\nd_ff = 'x'\n", ":3:", "expected a whole number, not 'x'"),
        ("[model]\nd_ff = true\n", ":2:", "expected a whole number"),
        ("[model]\nd_ff = 1.0\n", ":2:", "expected a whole number"),
        ("[training]\nlr = 1\nbetas = [0.9]\n", ":3:", "expected a list of 2 numbers"),
        ("[model]\ndropout = 1.5\n", ":2:", "must be at most 1"),
        ("[modle]\nd_ff = 1\n", ":1:", "did you mean 'model'?"),
        ("[pascal]\nvarianse = 1\n", ":2:", "did you mean 'variance'?"),
        ("[model]\nnorm = 'middle'\n", ":2:", "one of post, pre"),
        ("[model\n", ":1:", "not TOML"),
        ("variant = 3\n", ":1:", "expected a string"),
    ],
)
def test_a_wrong_file_is_refused_with_key_file_and_line(tmp_path, text, place, what):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        resolve("pascal", "base", [from_file(str(file))])
    assert f"bad.toml{place}" in str(caught.value)
    assert what in str(caught.value)


def test_the_command_line_is_refused_as_usage():
    with pytest.raises(UsageError, match="did you mean 'd_model'"):
        resolve("vanilla", "base", from_settings(["model.d_modle=3"]))
    with pytest.raises(UsageError, match="section"):
        from_settings(["no_such=1"])
    with pytest.raises(UsageError, match="did you mean 'tiny'"):
        resolve("vanilla", "tinny", [])
    with pytest.raises(
        UsageError, match="known are auto, base, small, tiny and those of the papers"
    ):
        resolve(None, "demo", [])


def test_only_the_data_can_say_which_preset_auto_is():
    with pytest.raises(UsageError, match="one of base, small, tiny, by data and device; name one"):
        resolve("vanilla", "auto", [])


def test_a_key_without_section_is_found():
    assert resolve(None, "base", from_settings(["positions=none"])).model.positions == "none"


def test_heads_must_divide_the_width():
    with pytest.raises(ConfigError, match="n_heads"):
        resolve(None, "base", from_settings(["n_heads=7"]))


# Wang et al. (2019), Table 1: sequential absolute, relative; structural absolute, relative.
TABLE_1 = {
    1: (False, False, False, False),
    2: (False, False, True, False),
    3: (False, False, False, True),
    4: (True, False, False, False),
    5: (True, False, True, False),
    6: (True, False, True, True),
    7: (True, True, False, False),
    8: (True, True, True, False),
    9: (True, True, True, True),
}


@pytest.mark.parametrize("row", TABLE_1)
def test_structural_presets_are_the_rows_of_table_1(row):
    found = resolve(None, f"paper-structural-{row}", [])
    names = found.variant.split("+")
    switches = (found.model.positions == "sinusoid", "rel" in names)
    assert (*switches, "struct-abs" in names, "struct-rel" in names) == TABLE_1[row]
    assert found.model.decoder_positions == "sinusoid"  # "keep the decoder unchanged"
    assert found.options.get("rel", {}).get("stack", "encoder") == "encoder"
    assert found.options.get("struct-rel", {}).get("clip", 16) == 16


@pytest.mark.parametrize(("row", "keys", "values"), [("kv", 1, 1), ("k", 1, 0), ("v", 0, 1)])
def test_dep_presets_are_the_rows_of_omotes_tables(row, keys, values):
    found = resolve(None, f"paper-dep-ablation-{row}", [])
    assert (found.model.positions, found.model.decoder_positions) == ("none", "none")
    assert found.options["dep"] == {"clip": 2, "keys": bool(keys), "values": bool(values)}
    assert (found.training.batch_sentences, found.training.max_epochs) == (100, 50)
    main = resolve(None, "paper-dep-both", [])
    assert (main.variant, main.options["rel"]["clip"]) == ("dep+rel", 2)
    assert (main.training.batch_sentences, main.training.max_epochs) == (256, 30)
    assert main.training.metric == "accuracy"
    assert main.training.lr == pytest.approx(0.000699, abs=1e-6)


@pytest.mark.parametrize(("corpus", "steps"), [("nc11-de-en", 20_000), ("wmt16-en-de", 100_000)])
def test_gps_presets_are_the_rows_of_its_table_2(corpus, steps):
    found = resolve(None, f"paper-gps-{corpus}", [])
    assert found.options["gps"]["layer"] == 0
    assert (found.training.warmup, found.training.max_steps) == (8000, steps)
    assert found.model.dropout == (0.3 if steps == 20_000 else 0.1)


def test_tree_presets_are_the_models_of_choshen_and_abends_tables():
    medium, large = (resolve(None, f"paper-trees-{n}", []) for n in ("gcn", "large-parent"))
    assert (medium.model.d_model, medium.model.decoder_layers, medium.model.n_heads) == (256, 4, 8)
    assert (large.model.d_model, large.model.encoder_layers) == (512, 6)
    for one, steps in ((medium, 90_000), (large, 150_000)):
        training = one.training
        assert (training.batch_sentences, training.max_steps, training.lr) == (128, steps, 1e-4)
        assert (training.betas, training.eps, training.warmup) == ((0.9, 0.999), 1e-8, 4000)
    assert medium.options["gcn"]["layers"] == 2
    gates = resolve(None, "paper-trees-gcn-gates", []).options["gcn"]
    assert (gates["labels"], gates["gates"]) == (False, False)
    labels = resolve(None, "paper-trees-gcn-labels", []).options["gcn"]
    assert (labels["labels"], labels["gates"]) == (False, True)


@pytest.mark.parametrize("setting", ["training.lr=1\nseed=2", "training.lr=1\r", "\n=1", "lr"])
def test_a_setting_is_one_line(setting):
    with pytest.raises(UsageError, match=r"expected section\.key=value"):
        from_settings([setting])
