"""Models of every variant that begin with another model's weights: what they take from it."""

from __future__ import annotations

import pytest
import torch

from synmt_cli.core.data.labels import Labels
from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.model.size import Size
from synmt_cli.core.run import tensors
from synmt_cli.core.run.building import build
from synmt_cli.core.run.config import Config, resolve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.core.training.pretrained import Pretrained
from synmt_cli.core.variants.table import VARIANTS
from synmt_cli.errors import ConfigError
from synmt_cli.io.digests import sha256

OLD = ["nsubj", "det", "obj"]
NEW = [*OLD, "fresh", "det:poss"]
SIZE = Size(d_model=16, d_ff=8, n_heads=8, encoder_layers=2, decoder_layers=2)
TEXT = ["Tom and Mary go to school .", "A dog sleeps .", "The cats see the dogs in school ."]


@pytest.fixture(scope="module")
def vocabularies():
    """One vocabulary for both sides, with transitions, which some variants write."""
    symbols = ["LEFT-ARC:det", "RIGHT-ARC:obj", "RIGHT-ARC:punct", "LEFT-ARC:nsubj"]
    one = Vocabulary(train(TEXT, VocabularySettings(size=70, symbols=tuple(symbols))))
    return Vocabularies(one, one)


def config(variant):
    resolved = resolve(variant, "tiny", [])
    return Config(variant=variant, model=SIZE, options=resolved.options)


@pytest.fixture
def saved(tmp_path, vocabularies):
    """`saved("gps")` is a model of random weights with the labels OLD, and its weights."""

    def make(variant):
        torch.manual_seed(1)
        model = build(config(variant), vocabularies, len(OLD))
        weights = {name: torch.randn_like(p) for name, p in model.named_parameters()}
        path = tmp_path / "model.safetensors"
        tensors.write(path, weights, {"vocabulary": vocabularies.fingerprint})
        record = {"run": "r", "checkpoint": "best", "sha256": sha256(str(path)), "labels": 3}
        return Pretrained(Run(tmp_path), config(variant), OLD, record, path), weights

    return make


def begun(pretrained, variant, vocabularies, labels=NEW):
    """The parameters of a new model of a variant, before and after it takes the weights."""
    torch.manual_seed(2)
    model = build(config(variant), vocabularies, len(labels))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    pretrained.begin(model, vocabularies, Labels(labels), Ranks())
    return before, {name: p.detach() for name, p in model.named_parameters()}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_keeps_every_weight_and_its_labels(saved, vocabularies, variant):
    """Only rows of labels are added, after those there are."""
    pretrained, old = saved(variant)
    _, new = begun(pretrained, variant, vocabularies)
    assert new.keys() == old.keys()
    grown = {name for name in new if new[name].shape != old[name].shape}
    assert bool(grown) == (variant in ("gps", "tags"))
    for name, values in new.items():
        n_rows = len(OLD) + 1 if name in grown else len(values)
        assert values[:n_rows].equal(old[name]), name
        if name in grown:
            assert len(values) == len(NEW) + 1
            assert values[NEW.index("det:poss") + 1].equal(old[name][OLD.index("det") + 1])


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_may_begin_with_a_plain_model(saved, vocabularies, variant):
    """The parameters that it adds stay as they were drawn."""
    pretrained, old = saved("vanilla")
    before, new = begun(pretrained, variant, vocabularies)
    for name, values in new.items():
        assert values.equal(old[name] if name in old else before[name]), name


@pytest.mark.parametrize(
    ("variant", "lines"),
    [
        ("vanilla", []),
        ("vanilla+tags", ["{} of {:,} parameters are new"]),
        ("tags", ["{} of {:,} parameters are new", "new labels: fresh, det:poss"]),
    ],
)
def test_what_is_new_is_told(saved, vocabularies, variant, lines):
    """A plain model has no vectors of labels, so all of them are new, not some."""
    pretrained, _ = saved(variant.split("+")[0])
    model = build(config(variant.removeprefix("vanilla+")), vocabularies, len(NEW))
    n, n_new = sum(p.numel() for p in model.parameters()), 10 * {"tags": 2}.get(variant, 6)
    introduced = list(pretrained.introduction(model, vocabularies, Labels(NEW)))
    assert introduced == [
        "begins with the weights of r (best)",
        *(s.format(n_new, n) for s in lines),
    ]


def test_a_modifier_is_known_by_its_variant_not_by_its_number(saved, vocabularies):
    pretrained, old = saved("gps+dep")
    _, new = begun(pretrained, "tags+gps+pascal+dep+rel", vocabularies, OLD)
    for name, values in old.items():
        moved = name.replace("modifiers.1.", "modifiers.3.").replace("modifiers.0.", "modifiers.1.")
        assert new[moved].equal(values), name


def test_weights_that_the_new_model_lacks_are_refused(saved, vocabularies):
    pretrained, _ = saved("tags")
    with pytest.raises(ConfigError, match=r"modifiers\.0\.label\.weight is not part of the new"):
        begun(pretrained, "vanilla", vocabularies)


def test_all_processes_must_see_the_same_weights(saved, vocabularies):
    class Second(Ranks):
        def from_first(self, values):
            return [value + 1 for value in values]

    pretrained, _ = saved("vanilla")
    model = build(config("vanilla"), vocabularies, 3)
    with pytest.raises(ConfigError, match="not the weights that the first process begins with"):
        pretrained.begin(model, vocabularies, Labels(OLD), Second())
