"""`synmt average`: the mean of weights is a run like any other."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file
from support.tree_workshop import Workshop

KEEP = ("training.save_every=1", "training.keep=3")
STEPS = ("--max-steps", "4")
NAMES = ["step-2", "step-3", "step-4"]


@pytest.fixture(scope="module")
def place(tmp_path_factory, forked):
    """A Workshop with runs of random weights; `vanilla` has the checkpoints of NAMES."""
    shop = Workshop(tmp_path_factory.mktemp("average"), forked)
    shop.train("vanilla", *KEEP, options=STEPS)
    shop.train("pascal")
    shop.train("vanilla", "model.n_heads=4", run="heads")
    shop.train("vanilla", "model.d_ff=48", run="wide")
    shop.featurize("train", "split.model", "split.jsonl", "--split-transitions")
    shop.train("vanilla", run="split", train="split.jsonl", options=("--dev", "split.jsonl"))
    shop.train("linearized")
    shop.train("linearized", "training.transition_weight=1", run="heavy")
    return shop


@pytest.fixture
def new(tmp_path):
    return tmp_path / "new"


def weights(place, name):
    return load_file(place.folder / "vanilla" / "checkpoints" / name / "weights.safetensors")


def test_every_weight_is_the_mean_that_numpy_gives(place, new):
    place("average", "-m", "vanilla", "-o", new, status=0)
    found = load_file(new / "model.safetensors")
    of_each = [weights(place, name) for name in NAMES]
    assert found.keys() == of_each[0].keys()
    for name, tensor in found.items():
        expected = np.mean([one[name].astype(np.float64) for one in of_each], axis=0)
        np.testing.assert_array_equal(tensor, expected.astype(np.float32))


def test_the_new_run_has_all_of_a_run_and_translates(place, new):
    done = place("average", "-m", "vanilla", "--last", 2, "-o", new, status=0)
    assert b"averaged 2 checkpoints (step-3, step-4) into " in done.stderr
    for name in ("config.toml", "spm.model", "labels.json"):
        assert (new / name).read_bytes() == (place.folder / "vanilla" / name).read_bytes()
    assert json.loads((new / "env.json").read_bytes())["averaged"] == ["step-3", "step-4"]
    assert len(place.translate(str(new), "dev.en").stdout.splitlines()) == 5


def test_checkpoints_that_are_too_far_apart_are_said_to_be(place, new, tmp_path):
    shutil.copytree(place.folder / "vanilla", tmp_path / "fast")
    event = {"event": "dev", "metric": "loss", "value": 0, "best": True}
    lines = [json.dumps({**event, "step": n, "perplexity": p}) for n, p in ((2, 9), (3, 5), (4, 4))]
    (tmp_path / "fast/metrics.jsonl").write_text("\n".join(lines) + "\n")
    done = place("average", "-m", tmp_path / "fast", "-o", new, status=0)
    warning = "warning: perplexity on dev fell from 9.00 to 4.00 between these checkpoints: their "
    assert warning + "mean may translate worse than the last one" in done.stderr.decode()
    named = [os.path.relpath(tmp_path / f"fast/checkpoints/step-{n}", place.folder) for n in (2, 4)]
    shutil.rmtree(new)
    fast = os.path.relpath(tmp_path / "fast", place.folder)
    done = place("average", "-m", fast, *named, "-o", new, status=0)
    assert warning in done.stderr.decode()
    for chosen in (("step-3", "step-4"), ("step-2", "best")):
        shutil.rmtree(new)
        done = place("average", "-m", tmp_path / "fast", *chosen, "-o", new, status=0)
        assert b"warning" not in done.stderr


def test_the_mean_of_one_checkpoint_is_that_checkpoint(place, new):
    place("average", "-m", "vanilla", "step-3", "-o", new, status=0)
    alone = place.translate("vanilla", "--checkpoint", "step-3", "dev.en").stdout
    assert place.translate(str(new), "dev.en").stdout == alone
    other = place.translate("vanilla", "--checkpoint", "step-2", "dev.en").stdout
    assert other != alone  # or the line above says nothing


def test_checkpoints_have_names_and_folders(place, new):
    folder = "vanilla/checkpoints/step-3/"
    place("average", "-m", "vanilla", "step-2", folder, "best", "-o", new, status=0)
    assert json.loads((new / "env.json").read_bytes())["averaged"] == ["step-2", folder, "best"]


def test_a_mean_says_that_it_is_one_whatever_its_runs_have_lost(place, new):
    shutil.copytree(place.folder / "vanilla", place.folder / "bare")
    (place.folder / "bare/env.json").unlink()
    place("average", "-m", "bare", "-o", new, status=0)
    assert json.loads((new / "env.json").read_bytes())["averaged"] == NAMES


def test_a_name_need_not_be_unicode(place, new):
    other = os.fsdecode(b"r\xff")
    shutil.copytree(place.folder / "vanilla", place.folder / other)
    place("average", "-m", "vanilla", "step-2", f"{other}/checkpoints/step-3", "-o", new, status=0)
    (name,) = json.loads((new / "env.json").read_bytes())["averaged"][1:]
    assert name.isascii()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--last", 4], 66, "vanilla has 3 checkpoints, not 4; synmt train --set training.keep=N"),
        (["step-1"], 66, "step-1 is not a folder of a checkpoint or a run, and vanilla has only"),
        (["step-4", "last"], 2, "last would count twice"),
        (["best", "step-4"], 2, "step-4 would count twice"),  # another file of the same weights
        (["step-4", "--last", 1], 2, "name checkpoints or give --last, not both"),
        (["--last", 0], 2, "--last"),
        (["step-4", "pascal"], 78, "pascal/model.safetensors: variant is 'pascal', not 'vanilla'"),
        (["step-4", "heads"], 78, "heads/model.safetensors: model.n_heads is 4, not 2"),
        (["step-4", "wide"], 78, "wide/model.safetensors: model.d_ff is 48, not 32"),
        (["step-4", "split"], 78, "split/model.safetensors: trained with another vocabulary"),
    ],
)
def test_what_does_not_fit_is_refused(place, new, arguments, status, message):
    done = place("average", "-m", "vanilla", *arguments, "-o", new)
    assert done.returncode == status
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert list(new.parent.iterdir()) == []


def test_an_experiment_is_no_run(place, new, tmp_path):
    (tmp_path / "e").mkdir()
    for name, content in (("Makefile", ""), ("config.toml", "[training]\npatience = 8\n")):
        (tmp_path / "e" / name).write_text(content)
    done = place("average", "-m", tmp_path / "e", "-o", new, status=78)
    assert b"e is an experiment, not a run directory; its models are models/" in done.stderr


def test_a_link_to_itself_is_no_checkpoint(place, new, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    done = place("average", "-m", "vanilla", tmp_path / "loop", "-o", new, status=66)
    assert b"loop is not a folder of a checkpoint or a run" in done.stderr


def test_arcs_must_weigh_the_same_in_all_runs(place, new):
    """Search corrects for the weight of arcs, by one value for the whole model."""
    done = place("average", "-m", "linearized", "best", "heavy", "-o", new, status=78)
    assert b"training.transition_weight is 1, not 0.3\n" in done.stderr


def test_labels_of_another_run_must_be_the_same(place, new, tmp_path):
    other = shutil.copytree(place.folder / "heads", tmp_path / "heads")
    (other / "labels.json").write_text('["other"]', encoding="utf-8")
    config = (place.folder / "vanilla" / "config.toml").read_bytes()
    (other / "config.toml").write_bytes(config)
    done = place("average", "-m", "vanilla", "step-4", other, "-o", new, status=78)
    assert b"trained with other dependency labels" in done.stderr


def test_a_flipped_bit_is_refused_and_nothing_is_left(place, new):
    place.train("vanilla", run="bad")
    path = place.folder / "bad" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = place("average", "-m", "bad", "best", "-o", new, status=65)
    assert b"bad/model.safetensors: damaged" in done.stderr
    path.write_bytes(content[:-9])
    place("average", "-m", "bad", "best", "-o", new, status=65)
    assert list(new.parent.iterdir()) == []


@pytest.mark.parametrize(("name", "message"), [("-", b"not stdout"), ("", b"is empty")])
def test_a_name_that_is_no_folders_is_refused(place, name, message):
    done = place("average", "-m", "vanilla", "-o", name, status=2)
    assert message in done.stderr


def test_a_folder_that_is_there_is_never_touched(place, new):
    new.mkdir()
    done = place("average", "-m", "vanilla", "-o", new, status=73)
    assert done.stderr.endswith(b"new: it already exists\n")
    assert list(new.iterdir()) == []
    (new / "file").touch()
    place("average", "-m", "vanilla", "-o", new / "file" / "a", status=73)
    place("average", "-m", "vanilla", "-o", new / "a" / "b", status=0)
    place("average", "-m", new, "-o", new / "c", status=66)


def test_a_mean_is_not_trained_on(place, new):
    """It has no optimizer: a training there would begin anew and replace it."""
    place("average", "-m", "vanilla", "-o", new)
    before = (new / "model.safetensors").read_bytes()
    options = ("--train", place.folder / "train.jsonl", "--spm", place.folder / "spm.model")
    done = place("train", *options, "--run", new, "--preset", "tiny", status=78)
    assert b"is the mean of other runs' checkpoints" in done.stderr
    assert (new / "model.safetensors").read_bytes() == before
    assert not {path.name for path in new.iterdir()} & {".lock", "cache"}
