"""Which settings a run may go on with, and which ones runs of earlier versions keep."""

import pytest

from synmt_cli.core.options import options
from synmt_cli.core.run.config import SECTIONS, SettingsLayer, resolve
from synmt_cli.core.run.resuming import LATER, as_begun, refuse_another, unsaid
from synmt_cli.errors import ConfigError


def test_resuming_names_the_option_that_differs(tmp_path):
    old, new = ({"model": {"d_ff": n}, "training": {"max_steps": n}} for n in (1, 2))
    with pytest.raises(ConfigError, match=r"model\.d_ff = 1, not 2"):
        refuse_another(old, new, tmp_path)
    refuse_another(old, {**new, "model": {"d_ff": 1}}, tmp_path)


def test_a_key_of_another_run_stays_in_its_line(tmp_path):
    """Somebody may make a config.toml in which the name of a section is a line feed."""
    with pytest.raises(ConfigError) as caught:
        refuse_another({"\n": {"a": "x" * 5000}}, {}, tmp_path)
    assert "trained with \\n.a = 'xxx" in str(caught.value)
    assert len(str(caught.value)) < 1000


FIRST = {  # the settings of the first version that wrote config.toml
    *("max_steps", "batch_tokens", "accumulate", "lr", "initial_lr", "warmup", "betas", "eps"),
    *("weight_decay", "clip_norm", "label_smoothing", "max_length", "validate_every"),
    *("save_every", "patience", "metric", "keep", "precision", "seed"),
    *("d_model", "d_ff", "n_heads", "encoder_layers", "decoder_layers", "dropout", "norm", "tied"),
    *("attention_dropout", "activation_dropout", "positions"),
}


def test_every_newer_setting_says_what_held_before_it():
    known = {name for owner in SECTIONS.values() for name in options(owner)}
    assert known - FIRST == {key.partition(".")[2] for key in LATER}


def test_settings_newer_than_a_run_are_what_held_without_them():
    tables = {"model": {"positions": "none"}, "training": {"label_smoothing": 0.2, "shard": True}}
    assert unsaid(tables) == {
        "model": {"decoder_positions": "none"},
        "training": {"max_epochs": 0, "batch_sentences": 0, "prefix_share": 1.0, "compile": False}
        | {"micro_tokens": 0, "transition_weight": 1.0, "transition_smoothing": 0.2}
        | {"tokenize": "13a"},
    }
    resolve(None, "base", [SettingsLayer(unsaid(tables), "")])  # all of them are settings
    now = resolve(None, "tiny", []).to_toml()
    assert resolve(None, "tiny", [as_begun(now)]).to_toml() == now
    first = {**now, "training": {**now["training"], "seed": 1}}
    assert resolve(None, "tiny", [as_begun(first)]).to_toml() == first


@pytest.mark.parametrize("positions", ["sinusoid", "none"])
def test_a_run_of_an_earlier_version_goes_on_as_it_began_however_often(positions):
    """The first resume writes the settings that its config.toml lacked."""
    asked = SettingsLayer({"model": {"positions": positions}}, "")
    early = resolve(None, "tiny", [asked]).to_toml()
    for key in LATER:
        section, _, name = key.partition(".")
        del early[section][name]
    once = resolve(None, "tiny", [as_begun(early), asked]).to_toml()
    assert once["training"]["transition_smoothing"] == once["training"]["label_smoothing"] > 0
    assert once["model"]["decoder_positions"] == positions
    assert resolve(None, "tiny", [as_begun(once), asked]).to_toml() == once
