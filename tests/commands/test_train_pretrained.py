"""`synmt train --pretrained`: a training that begins with the weights of a trained model."""

from __future__ import annotations

import json
import shutil
import tomllib

import pytest
import torch
from support.run_folders import SIZE, Trainings, check_whole, differences, losses, weights

from synmt_cli.core.run import tensors
from synmt_cli.io.digests import sha256

pytestmark = pytest.mark.slow

STILL = (  # updates that change nothing
    *("--set", "training.lr=0", "--set", "training.initial_lr=0", "--max-steps", "1"),
)
GO = ("--set", "training.lr=0.01", "--set", "training.warmup=1")


@pytest.fixture(scope="module")
def place(tmp_path_factory, example_folder, forked):
    """Trains in a folder that has the runs `vanilla` and `gps`, of two checkpoints each."""
    made = Trainings(example_folder, tmp_path_factory.mktemp("pretrained"), forked)
    often = ("--set", "training.save_every=2", "--set", "training.validate_every=2")
    for variant in ("vanilla", "gps"):
        options = ("--variant", variant, "--seed", "7", *GO, *often, "--max-steps", "4")
        made(*options, run=variant, status=0)
    return made


@pytest.fixture
def folder(place):
    return place.folder


def of(folder, name="vanilla"):
    return ("--pretrained", folder / name)


def best(run):
    return tensors.read(run / "model.safetensors")[0]


def same(one, other):
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def records(source, target, labels):
    """Writes a copy of records with other labels. labels: old -> new; all others stay."""
    lines = []
    for line in source.read_bytes().splitlines():
        record = json.loads(line)
        record["deprels"] = [labels.get(name, name) for name in record["deprels"]]
        lines.append(json.dumps(record, ensure_ascii=False))
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


# --- weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vanilla", "gps"])
def test_without_an_update_it_is_the_model_that_it_begins_with(place, folder, name):
    """Its weights and its loss on dev, bit for bit, whatever its own seed is."""
    run = f"{name}.still"
    done = place(*STILL, "--seed", "9", *of(folder, name), run=run, status=0)
    assert same(weights(folder / run, 1), best(folder / name))
    step = int(tensors.stated_step(folder / name / "model.safetensors"))
    assert losses(folder / run) == [losses(folder / name)[step // 2 - 1]]
    assert f"begins with the weights of {folder / name} (best)\n".encode() in done.stderr
    assert b"are new" not in done.stderr


def test_a_checkpoint_and_a_mean_are_models_too(place, folder, forked):
    for name, step in (("step-2", 2), ("last", 4)):
        place(*STILL, *of(folder), "--checkpoint", name, run=name, status=0)
        assert same(weights(folder / name, 1), weights(folder / "vanilla", step))
    recorded = tomllib.loads((folder / "last/config.toml").read_text())["pretrained"]
    assert recorded == {
        "run": str(folder / "vanilla"),
        "checkpoint": "step-4",
        "sha256": sha256(str(folder / "vanilla/checkpoints/step-4/weights.safetensors")),
        "labels": len(json.loads((folder / "vanilla/labels.json").read_bytes())),
    }
    assert forked("average", "-m", folder / "vanilla", "-o", folder / "mean").returncode == 0
    place(*STILL, *of(folder, "mean"), run="of.mean", status=0)
    assert same(weights(folder / "of.mean", 1), best(folder / "mean"))


def test_only_weights_are_taken(place, folder):
    """Steps count from 0, and the moments are those of a single update."""
    place(*GO, *of(folder), "--max-steps", "1", run="one", status=0)
    assert check_whole(folder / "one") == [1]
    moments = tensors.read(folder / "one/checkpoints/step-1/optimizer.safetensors")[0]
    counts = {value.item() for key, value in moments.items() if key.startswith("step.")}
    assert counts == {1.0}
    state = json.loads((folder / "one/checkpoints/step-1/state.json").read_bytes())["state"]
    assert state["step"] == 1
    assert not same(weights(folder / "one", 1), best(folder / "vanilla"))


def test_sizes_variant_vocabulary_and_preset_are_the_models(place, folder, example_folder):
    """No other option names them, the records name no vocabulary, and none is in their folder."""
    (apart := folder / "apart").mkdir()
    for name in ("train", "dev"):
        lines = map(json.loads, (example_folder / f"{name}.jsonl").read_bytes().splitlines())
        unnamed = [json.dumps({k: v for k, v in line.items() if k != "vocab"}) for line in lines]
        (apart / f"{name}.jsonl").write_text("\n".join(unnamed) + "\n")
    data = ("--train", apart / "train.jsonl", "--dev", apart / "dev.jsonl")
    options = (*data, *of(folder, "gps"), *STILL, "--set", "metric=loss", "--set", "dropout=0.4")
    arguments = ("train", *options, "--run", folder / "bare", "--threads", "1")
    done = place._forked(*map(str, arguments), cwd=apart)
    assert done.returncode == 0, done.stderr.decode()
    assert b"preset tiny, except for its [model]\n" in done.stderr
    old, new = (
        tomllib.loads((folder / name / "config.toml").read_text()) for name in ("gps", "bare")
    )
    assert new["model"] == old["model"] | {"dropout": 0.4}
    assert (new["variant"], new["preset"]) == ("gps", "tiny")
    assert new["training"]["warmup"] == 300  # tiny's, not that of the model
    assert (folder / "bare/spm.model").read_bytes() == (folder / "gps/spm.model").read_bytes()
    # Other batches are rounded differently.
    assert losses(folder / "bare") == pytest.approx([min(losses(folder / "gps"))], rel=1e-6)
    # It also resumes from its own folder, without the model.
    arguments = ("train", *data, "--run", folder / "bare", "--set", "metric=loss", *STILL[:-1], "2")
    done = place._forked(*map(str, (*arguments, "--set", "dropout=0.4", "--threads", "1")))
    assert done.returncode == 0, done.stderr.decode()
    assert b"resuming" in done.stderr


def test_variants_can_be_added_and_their_parameters_are_new(place, folder):
    options = ("--variant", "tags+gps+pascal", "--set", "pascal.heads=1", "--set", "tags.width=4")
    done = place(*STILL, *options, *of(folder, "gps"), "--seed", "3", run="more", status=0)
    found, old = weights(folder / "more", 1), best(folder / "gps")
    # tags stands before gps now
    moved = {name.replace("modifiers.0.", "modifiers.1."): value for name, value in old.items()}
    assert same({name: found[name] for name in moved}, moved)
    new = found.keys() - moved.keys()
    assert new == {"encoder.modifiers.0.label.weight"}
    place(*STILL, *options, "--seed", "3", run="drawn", status=0)
    drawn = weights(folder / "drawn", 1)
    assert all(found[name].equal(drawn[name]) for name in new)
    n_new, n = (sum(map(torch.numel, x)) for x in ([found[k] for k in new], found.values()))
    assert f"{n_new:,} of {n:,} parameters are new\n".encode() in done.stderr


# --- labels ----------------------------------------------------------------------------------


def test_rows_keep_their_labels(place, folder, example_folder):
    """A subtype begins with the row of its universal label, which translation would use for it."""
    labels = {"det": "det:other", "punct": "fresh"}
    other = records(example_folder / "train.jsonl", folder / "other.jsonl", labels)
    done = place(*STILL, *of(folder, "gps"), "--train", other, run="labels", status=0)
    known, names = (
        json.loads((folder / name / "labels.json").read_bytes()) for name in ("gps", "labels")
    )
    assert "punct" in known
    assert names[: len(known)] == known
    assert sorted(names[len(known) :]) == ["det:other", "fresh"]
    table = "encoder.modifiers.0.label.weight"
    old, new = best(folder / "gps"), weights(folder / "labels", 1)
    rows = new[table]
    assert rows[: len(known) + 1].equal(old[table])
    assert len(rows) == len(names) + 1
    assert rows[names.index("det:other") + 1].equal(old[table][known.index("det") + 1])
    fresh = rows[names.index("fresh") + 1]
    assert fresh.abs().min() > 0
    assert not any(fresh.equal(row) for row in old[table])
    assert same({**new, table: 0 * fresh}, {**old, table: 0 * fresh})
    assert b"new labels: det:other, fresh\n" in done.stderr or (
        b"new labels: fresh, det:other\n" in done.stderr
    )


def test_subtypes_of_known_labels_change_nothing_yet(place, folder, example_folder):
    """tags: every label has its own row, all rows of `det:...` begin alike."""
    options = ("--variant", "tags", "--set", "tags.width=4", *GO, "--max-steps", "2")
    place(*options, run="tags", status=0)
    files = []
    for name in ("train", "dev"):
        labels = {"det": "det:x", "nsubj": "nsubj:y"}
        files.append(records(example_folder / f"{name}.jsonl", folder / f"{name}.sub", labels))
    data = ("--train", files[0], "--dev", files[1], "--spm", example_folder / "spm.model")
    run = ("--run", folder / "sub")
    done = place._forked(*map(str, ("train", *SIZE, *data, *run, *STILL, *of(folder, "tags"))))
    assert done.returncode == 0, done.stderr.decode()
    assert losses(folder / "sub") == losses(folder / "tags")


# --- resuming --------------------------------------------------------------------------------


def test_a_run_resumes_bit_for_bit_also_without_the_model(place, folder, example_folder):
    """gps: the cache has paths of labels, whose numbers go on from the model's."""
    other = records(example_folder / "train.jsonl", folder / "b.jsonl", {"det": "new", "obj": "a"})
    often = ("--set", "training.save_every=7", "--set", "training.validate_every=5", *GO)
    shutil.copytree(folder / "gps", folder / "copy")
    model = of(folder, "copy")
    place("--max-steps", "12", *often, *model, "--train", other, run="whole", status=0)
    for steps, named in ((4, model), (9, model), (11, ()), (12, model)):
        options = ("--max-steps", steps, *often, *named, "--train", other)
        before = (folder / "parts/cache/index.json").stat().st_mtime_ns if steps > 4 else 0
        done = place(*options, run="parts", status=0)
        assert (b"begins with" in done.stderr) == (steps == 4)
        if steps > 4:  # the numbers in the cache are still the right ones
            assert (folder / "parts/cache/index.json").stat().st_mtime_ns == before
        if steps == 9:
            shutil.rmtree(folder / "copy")
    same_end = {
        name for name in differences(folder / "whole", folder / "parts") if "step-12" in name
    }
    assert same_end == set()
    one, two = (tomllib.loads((folder / n / "config.toml").read_text()) for n in ("whole", "parts"))
    assert one["pretrained"] == two["pretrained"]


def test_another_model_is_refused(place, folder):
    place(*GO, *of(folder), "--max-steps", "1", run="r", status=0)
    options = (*GO, *of(folder), "--max-steps", "2")
    done = place(*options, "--checkpoint", "step-2", run="r", status=78)
    problem = b"r was trained with another pretrained model; name that one, none, or another --run"
    assert problem in done.stderr
    place(*GO, "--max-steps", "1", run="alone", status=0)
    done = place(*options, run="alone", status=78)
    problem = b"alone was trained without a pretrained model; name none, or another --run"
    assert problem in done.stderr
    shutil.copytree(folder / "vanilla", folder / "moved")
    place(*GO, *of(folder, "moved"), "--max-steps", "2", run="r", status=0)
    assert b"/moved" in (folder / "r/config.toml").read_bytes()


def test_a_run_without_a_checkpoint_still_needs_its_model(place, folder):
    place(*STILL, *of(folder), run="early", status=0)
    shutil.rmtree(folder / "early/checkpoints")
    done = place(*STILL, run="early", status=78)
    assert f"name them by --pretrained {folder / 'vanilla'}\n".encode() in done.stderr
    place(*STILL, *of(folder), run="early", status=0)
    assert same(weights(folder / "early", 1), best(folder / "vanilla"))


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (
            ("--variant", "pascal"),
            78,
            "gps has variant = 'gps', not 'pascal'; a variant can",
        ),
        (("--variant", "vanilla"), 78, "gps has variant = 'gps', not 'vanilla'"),
        (("--preset", "paper-pascal-nc11-en-de"), 78, "has variant = 'gps', not 'pascal'"),
        (("--set", "model.d_model=32"), 78, "gps has model.d_model = 16, not 32"),
        (("--set", "model.norm=post"), 78, "gps has model.norm = 'pre', not 'post'"),
        (("--set", "gps.layer=all"), 78, "gps has gps.layer = 0, not 'all'"),
        (("--variant", "gps+foo"), 2, "no variant 'foo'"),
        (("--checkpoint", "step-3"), 66, "gps has no checkpoint step-3; it has best, last, "),
    ],
)
def test_what_does_not_fit_the_model_is_refused(place, folder, options, status, message):
    done = place(*STILL, *of(folder, "gps"), *options, run="new", status=status)
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (folder / "new").exists()


def test_another_vocabulary_is_refused(place, folder, forked, example_folder):
    text = [example_folder / f"train.{side}" for side in ("en", "de")]
    other = folder / "other.model"
    assert forked("vocab", "train", "--size", 200, "-o", other, *text).returncode == 0
    made = ("--spm", other, "--tgt", text[1], "-o", folder / "v.jsonl")
    assert forked("featurize", *made, example_folder / "train.en.conllu").returncode == 0
    data = ("--train", folder / "v.jsonl", *of(folder), "--run", folder / "new", *STILL)
    for named in ((), ("--spm", other)):
        done = forked(*map(str, ("train", *SIZE, *data, *named)))
        assert done.returncode == 78
        assert b"vanilla has vocabulary " in done.stderr
        assert b"; make the records with its spm.model\n" in done.stderr
        assert not (folder / "new").exists()


def test_damaged_and_foreign_weights_are_refused(place, folder):
    shutil.copytree(folder / "vanilla", folder / "bad")
    path = folder / "bad/model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = place(*STILL, *of(folder, "bad"), run="new", status=65)
    assert b"bad/model.safetensors: damaged" in done.stderr
    shutil.copy(folder / "gps/model.safetensors", path)
    done = place(*STILL, *of(folder, "bad"), run="new", status=78)
    assert b"parameter encoder.modifiers.0.label.weight is not part of the model\n" in done.stderr
    assert not (folder / "new").exists()
    path.unlink()
    place(*STILL, *of(folder, "bad"), run="new", status=66)
    done = place(*STILL, *of(folder, "none"), run="new", status=66)
    assert b"none is not a run directory (it does not exist)\n" in done.stderr
    done = place(*STILL, "--checkpoint", "last", run="new", status=2)
    assert b"--checkpoint is for --pretrained\n" in done.stderr
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    ("line", "other"), [("labels = ", "labels = 1000"), ("labels = ", "labels = true"), ("run", "")]
)
def test_a_damaged_record_of_the_model_is_named(place, folder, forked, line, other):
    if not (folder / "hurt").exists():
        place(*STILL, *of(folder), run="hurt", status=0)
    shutil.copytree(folder / "hurt", folder / "worse")
    config = folder / "worse/config.toml"
    head, table = config.read_text().split("[pretrained]\n")
    lines = [other if one.startswith(line) else one for one in table.split("\n")]
    config.write_text(head + "[pretrained]\n" + "\n".join(lines))
    message = b"config.toml: [pretrained] needs run, checkpoint and sha256, all texts, and labels"
    done = forked("check", folder / "worse")
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
    done = place(*STILL, run="worse", status=78)
    assert message in done.stderr
    shutil.rmtree(folder / "worse")


# --- what tells of it ------------------------------------------------------------------------


def test_info_report_and_dry_run_know_it(place, folder, forked):
    place(*STILL, *of(folder), run="told", status=0)
    assert forked("check", folder / "told").returncode == 0
    shown = forked("info", folder / "told").stdout.decode()
    assert f"pretrained.run\t{folder / 'vanilla'}\n" in shown
    assert "pretrained.checkpoint\tbest\n" in shown
    done = place(*STILL, *of(folder), "--dry-run", run="told", status=0)
    assert b"seconds per update\t" in done.stdout
    done = place(*STILL, *of(folder), "--dry-run", run="dry", status=0)
    assert b"begins with the weights of " in done.stderr
    assert not (folder / "dry").exists()
    # A run's config.toml can also be a file of settings; as such it names no model.
    place("--config", folder / "told/config.toml", "--max-steps", "1", run="again", status=0)
    assert "pretrained" not in tomllib.loads((folder / "again/config.toml").read_text())
