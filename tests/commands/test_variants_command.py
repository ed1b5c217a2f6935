"""`synmt variants` says what the table, the builders and the models say."""

from __future__ import annotations

import json

import pytest
from support.program import synmt

from synmt_cli.core.trees.features import FEATURES
from synmt_cli.core.variants import defaults
from synmt_cli.core.variants.table import VARIANTS


@pytest.fixture(scope="module")
def listed():
    done = synmt("variants", "--format", "json")
    assert done.returncode == 0
    return {one["name"]: one for one in json.loads(done.stdout)}


def test_every_variant_is_listed_with_its_options_and_features(listed):
    assert list(listed) == list(VARIANTS)
    for name, one in listed.items():
        options = {key: value["default"] for key, value in one["options"].items()}
        assert options == defaults(VARIANTS[name])
        assert all(value["meaning"] for value in one["options"].values())
        assert set(one["features"]) | set(one["training_features"]) <= set(FEATURES)
        assert one["paper"][-4:].isdigit()


def test_what_a_variant_reads_is_what_its_paper_needs(listed):
    assert listed["dep"]["features"] == ["depth", "sentence"]
    assert listed["rel"]["features"] == listed["vanilla"]["features"] == []
    assert listed["sisa"]["features"] == []  # parents are predicted at test time
    assert listed["sisa"]["training_features"] == ["parent_first", "sentence"]
    assert listed["rel"]["stacks"] == ["encoder", "decoder"]
    assert listed["multitask"]["data"] == "multitask"


def test_some_may_be_named_and_combinations_are_taken_apart(run):
    done = run("variants", "dep+rel", "--format", "json")
    assert [one["name"] for one in json.loads(done.stdout)] == ["dep", "rel"]
    text = run("variants", "pascal").stdout.decode()
    assert "pascal.variance = 1.0: sigma^2" in text
    assert max(map(len, text.split("\n"))) <= 100


def test_an_unknown_name_is_a_usage_error(run):
    done = run("variants", "gpss")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"did you mean 'gps'" in done.stderr


def test_the_list_as_tables(run):
    latex = run("variants", "pascal", "sisa", "--format", "latex").stdout.decode()
    assert "pascal & Bugliarello and Okazaki 2020 &" in latex
    assert "pascal.parent\\_only & false &" in latex
    rows = run("variants", "vanilla", "pascal", "--format", "tsv").stdout.decode().splitlines()
    assert [row.split("\t")[7] for row in rows] == ["option", "", *defaults(VARIANTS["pascal"])]
    assert run("variants", "--json").returncode == 2
