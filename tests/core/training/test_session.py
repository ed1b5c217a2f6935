"""Reading what a run is made of."""

import shutil
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from synmt_cli import signals
from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.config import Choice, from_settings, resolve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.run.presets import by_data
from synmt_cli.core.training import session as sessions
from synmt_cli.core.training.device import precision
from synmt_cli.core.training.length import Length
from synmt_cli.core.training.session import Inputs, open_session
from synmt_cli.errors import ConfigError, DataError, ReadError, Stopped


def test_a_signal_ends_the_reading_of_records(example_folder):
    request = signals.Request()
    inputs = Inputs([str(example_folder / "train.jsonl")], "")
    config = resolve(None, "tiny", [])
    assert len(open_session(config, inputs, "cpu", request).train) > 0
    request.number = 15
    with pytest.raises(Stopped):
        open_session(config, inputs, "cpu", request)


def test_a_file_without_records_is_named_for_that(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    inputs = Inputs([str(tmp_path / "empty.jsonl")], "")
    with pytest.raises(DataError, match=r"empty\.jsonl: no records to train on"):
        open_session(resolve(None, "tiny", []), inputs, "cpu", signals.Request())


@pytest.mark.parametrize(("content", "error"), [(None, ReadError), (b"no record\n", DataError)])
def test_a_bad_dev_file_is_named_before_the_training_records_are_read(
    example_folder, tmp_path, content, error
):
    dev, read = tmp_path / "dev.jsonl", []
    if content is not None:
        dev.write_bytes(content)
    inputs = Inputs([str(example_folder / "train.jsonl")], str(dev))
    config = resolve(None, "tiny", [])
    with pytest.raises(error, match=r"dev\.jsonl"):
        open_session(config, inputs, "cpu", signals.Request(), watch=read.append)
    assert read == []


CPU = torch.device("cpu")
SMALL = ("d_model=16", "d_ff=16", "encoder_layers=1", "decoder_layers=1", "n_heads=2")


@pytest.fixture(scope="module")
def opened(example_folder):
    """A session and the choice that it was opened for, which leaves the preset to the data."""
    choice = Choice(None, "auto", from_settings(["training.batch_tokens=300", *SMALL]))
    inputs = Inputs([str(example_folder / "train.jsonl")], "")
    return open_session(choice.provisional(), inputs, "cpu", signals.Request()), choice


@pytest.mark.parametrize(
    ("n_tokens", "device", "name"),
    [
        (999_999, "cuda", "tiny"),
        (1_000_000, "cuda", "small"),
        (1_999_999, "cpu", "tiny"),  # small would take up to a day and a half for a comparison
        (2_000_000, "cpu", "small"),
        (4_999_999, "cuda", "small"),
        (5_000_000, "cuda", "base"),
        (10**9, "cpu", "small"),  # base would take weeks
    ],
)
def test_the_preset_goes_by_data_and_device(n_tokens, device, name):
    taken, why = by_data(n_tokens, device)
    assert taken == name
    assert f"{n_tokens:,} target tokens" in why


def test_the_preset_goes_by_pieces_whatever_transitions_there_are(opened):
    session, choice = opened
    ones = np.ones(len(session.train), np.int32)
    train = replace(session.train, n_pieces=ones)
    assert 2 * len(train) < train.n_tokens
    _, (told, *_) = replace(session, train=train).settled(choice)
    assert f"{2 * len(train):,} target tokens" in told  # with EOS


def test_a_copy_of_a_vocabulary_is_the_same_vocabulary(example_folder, tmp_path):
    """So embeddings may be shared, which is the default."""
    copy = shutil.copy(example_folder / "spm.model", tmp_path)
    inputs = Inputs([str(example_folder / "train.jsonl")], "", str(example_folder / "spm.model"))
    inputs = replace(inputs, spm_target=str(copy))
    session = open_session(resolve(None, "tiny", []), inputs, "cpu", signals.Request())
    assert session.vocabularies.source is session.vocabularies.target


def test_a_run_keeps_the_preset_and_the_precision_that_it_began_with(opened, tmp_path):
    session, choice = opened
    run = Run(tmp_path / "r")
    run.folder.mkdir()
    session, _ = session.settled(choice, run)
    assert session.config.preset == "tiny"
    assert session.config.model.d_model == 16  # settings win over the preset
    stored = {**session.config.to_toml()["training"], "precision": "bf16"}
    run.write_config({"preset": "small", "training": stored})
    assert session.settled(choice, run)[0].config.preset == "tiny"  # nothing was trained yet
    (run.folder / "checkpoints/step-1").mkdir(parents=True)
    again, told = session.settled(choice, run)
    assert (again.config.preset, told) == ("small", ["preset small: as this run began"])
    assert again._precision(None, run, Ranks(), None) == ("bf16", "as this run began")
    run.write_config({"preset": "tiny", "training": {"seed": 1, "label_smoothing": 0.2}})
    again, told = session.settled(choice, run)
    assert told[1] == (
        "as this run began: training.max_epochs = 0, "
        "training.transition_weight = 1.0, training.transition_smoothing = 0.2, training.seed = 1"
    )


def test_the_seed_draws_the_weights(opened):
    session, choice = opened
    drawn = []
    for seed in (1, 2, 1):
        layers = [*choice.layers, *from_settings([f"training.seed={seed}"])]
        model = session.settled(replace(choice, layers=layers))[0].trainer(None, Ranks()).model
        drawn.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_a_setting_that_fits_one_size_alone_can_be_read(example_folder):
    choice = Choice(None, "auto", from_settings(["d_model=100"]))  # 8 heads do not divide it
    assert choice.provisional().preset == "small"


def test_a_signal_ends_the_timing_of_bf16(opened, monkeypatch):
    session, choice = opened
    trainer = session.settled(choice)[0].trainer(None, Ranks())
    monkeypatch.setattr(devices, "has_bf16", lambda device: True)
    request, done = signals.Request(), []

    def backward(*_):
        done.append(request)
        request.number = 15

    monkeypatch.setattr(precision, "backward", backward)
    with pytest.raises(Stopped, match="the same command starts again"):
        precision.choose(trainer.model, session.train, trainer.settings, 1000, CPU, request)
    assert len(done) == 1


def test_processes_that_wait_for_the_records_hear_of_those_that_are_read(monkeypatch):
    said = []

    class Heard(Ranks):
        def any(self, flag):
            said.append(flag)
            return flag

    monkeypatch.setattr(sessions, "STILL_READING", -1.0)
    assert [*sessions._heard(iter("abc"), Heard())] == [*"abc"]
    assert said == [True] * 3
    monkeypatch.setattr(sessions, "STILL_READING", 60.0)
    assert [*sessions._heard(iter("abc"), Heard())] == [*"abc"]
    assert len(said) == 3


def test_bf16_is_timed_only_where_it_may_pay(opened, monkeypatch):
    session, choice = opened
    trainer = session.settled(choice)[0].trainer(None, Ranks())  # writes nothing
    asked = session.train, trainer.settings
    state = torch.get_rng_state()
    monkeypatch.setattr(precision, "ROUNDS", 1)
    monkeypatch.setattr(devices, "has_bf16", lambda device: True)
    assert precision.choose(trainer.model, *asked, 999, CPU)[0] == "fp32"
    taken, why = precision.choose(trainer.model, *asked, 1000, CPU)
    assert taken in ("fp32", "bf16")
    assert "times as fast as fp32 here" in why
    assert (torch.get_rng_state() == state).all()
    assert all(p.grad is None for p in trainer.model.parameters())
    monkeypatch.setattr(devices, "has_bf16", lambda device: False)
    assert precision.choose(trainer.model, *asked, 1000, CPU)[0] == "fp32"
    assert [precision.decided(speed)[0] for speed in (0.5, 1.0, 1.09, 1.1)] == [
        *("fp32", "fp32", "fp32", "bf16")
    ]


def test_models_to_be_compared_take_the_precision_whose_products_are_faster(monkeypatch):
    assert precision._seconds_of_product("bf16", CPU) > 0
    seconds = {"fp32": 1.0, "bf16": 2.0}  # Xeons from 2023 whose AMX is switched off
    monkeypatch.setattr(precision, "_seconds_of_product", lambda name, device: seconds[name])
    monkeypatch.setattr(devices, "has_bf16", lambda device: True)
    assert precision.for_all(CPU) == ("fp32", "bf16 is 0.5 times as fast as fp32 here")
    seconds["fp32"] = 4.0
    assert precision.for_all(CPU) == ("bf16", "bf16 is 2.0 times as fast as fp32 here")
    monkeypatch.setattr(devices, "has_bf16", lambda device: False)
    assert precision.for_all(CPU) == ("fp32", "this processor has no bf16")


def test_the_length_of_a_run_is_that_of_its_epochs(opened):
    session, choice = opened
    for accumulate in (1, 3, 1_000_000):
        settings = replace(choice.config("tiny").training, accumulate=accumulate, max_epochs=2)
        n_batches = sum(1 for _ in session.train.epoch(300, settings.seed, 0))
        per_epoch = -(-n_batches // accumulate)
        length = Length.of(session.train, settings)
        assert (length.updates, length.passes) == (2 * per_epoch, 2)
        assert length.tokens * per_epoch == pytest.approx(session.train.n_tokens)


def test_the_norm_of_the_gradient_is_that_before_clipping(opened):
    session, choice = opened
    trainer = session.settled(choice)[0].trainer(None, Ranks())
    update = next(trainer.updates.since(0, 0))
    for batch, _ in update.batches:
        trainer._backward(batch, 1 / update.n_tokens)
    squares = [p.grad.square().sum() for p in trainer.model.parameters() if p.grad is not None]
    norm = trainer.share.clip(1e-3)
    torch.testing.assert_close(norm, sum(squares).sqrt())
    torch.testing.assert_close(trainer.share.clip(0.0), torch.tensor(1e-3))


def test_of_validations_with_one_value_the_least_perplexed_is_the_best(opened):
    session, choice = opened
    trainer = session.settled(choice)[0].trainer(None, Ranks())
    assert trainer.state.is_best(0.0, 5.0)  # the first
    trainer.state.best_value, trainer.state.best_nll = 0.0, 5.0
    assert trainer.state.is_best(0.0, 4.9)
    assert not trainer.state.is_best(0.0, 5.0)
    assert trainer.state.is_best(0.1, 6.0)
    trainer.state.best_nll = None  # saved by an early version
    assert not trainer.state.is_best(0.0, 4.9)


def test_the_time_of_a_long_update_is_that_of_its_batches(opened):
    """With no time at all, one of five batches is run, and its time counts five times."""
    session, choice = opened
    config = session.settled(choice)[0].config
    five = replace(config, training=replace(config.training, accumulate=5))
    trainer = replace(session, config=five).trainer(None, Ranks())
    made = []
    backward = trainer._backward

    def slow(batch, scale):
        time.sleep(0.05)
        made.append(batch)
        return backward(batch, scale)

    trainer._backward = slow
    seconds = trainer.seconds_of_update(0.0, 30)
    assert (len(made), trainer.state.step) == (1, 0)
    assert seconds > 5 * 0.05


def test_a_run_in_fp16_does_not_go_on_with_shards(opened, tmp_path):
    session, choice = opened
    run = Run(tmp_path)
    session, _ = session.settled(choice)
    training = replace(session.config.training, precision="fp16")
    half = replace(session, config=replace(session.config, training=training))
    run.write_config(half.tables())
    run.model.touch()
    before = run.config.read_bytes()
    shard = replace(session.config.training, precision="auto", shard=True)
    with pytest.raises(ConfigError, match="not fp16"):
        replace(session, config=replace(session.config, training=shard)).trainer(run, Ranks())
    assert run.config.read_bytes() == before


def test_no_attention_plans_each_shape():
    """cuDNN's does, where torch prefers it; nearly every batch has a new shape."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    assert devices.choose("cpu").type == "cpu"
    assert not torch.backends.cuda.cudnn_sdp_enabled()
