"""`synmt init --pretrained`: experiments whose trainings begin with the weights of models."""

import itertools
import shlex
import shutil
import tomllib

import pytest
from support.program import shell
from support.run_folders import Trainings

from synmt_cli.io.digests import sha256

TEXT = ("--src", "own.en", "--tgt", "own.de", "--parser", "en.udpipe", "--seeds", "2")
EACH = "models/{variant}.{seed}"


@pytest.fixture(scope="module")
def place(tmp_path_factory, example_folder, forked):
    """A folder with text and with models of two variants and seeds: means, as in an experiment."""
    folder = tmp_path_factory.mktemp("pretrained models")
    for side in ("en", "de"):
        lines = (example_folder / f"train.{side}").read_bytes().splitlines(keepends=True)
        (folder / f"own.{side}").write_bytes(b"".join(lines[:100]))
    shutil.copy(example_folder / "en.udpipe", folder)
    train = Trainings(example_folder, folder, forked)
    for variant, seed in itertools.product(("vanilla", "dep"), "12"):
        name = f"{variant}.{seed}"
        train("--variant", variant, "--seed", seed, "--max-steps", 2, run=name, status=0)
        mean = ("average", "-m", folder / name, "-o", folder / "models" / name)
        (folder / "models").mkdir(exist_ok=True)
        assert forked(*mean).returncode == 0
    return folder


@pytest.fixture
def init(run, place, tmp_path):
    """`init(RUN, VARIANTS, …)` writes an experiment, and returns what happened."""

    def start(pretrained, variants, *options):
        named = ("--variants", variants, "--pretrained", pretrained, *options)
        return run("init", tmp_path / "own", *TEXT, *named, cwd=place)

    return start


def dry(folder, forked, *targets):
    """The trainings that make would start, as lists of words; and all lines that it prints."""
    done = shell(shlex.join(("make", "-n", *targets)), folder, first=forked.folder)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().replace("\\\n", "").splitlines()
    return [shlex.split(one) for one in lines if one.startswith("synmt train ")], lines


def of(words):
    option = dict(itertools.pairwise(words))
    return option["--run"].removeprefix("runs/"), option["--pretrained"], option


def test_each_training_begins_with_the_model_of_its_variant_and_seed(init, place, forked, tmp_path):
    done = init(EACH, "vanilla,dep")
    assert done.returncode == 0, done.stderr.decode()
    assert f"trainings begin with the weights of {EACH}\n".encode() in done.stderr
    settings = tomllib.loads((tmp_path / "own/config.toml").read_text())["training"]
    assert settings["lr"] == pytest.approx(0.003 / 3)
    trainings, lines = dry(tmp_path / "own", forked)
    pairs = {name: begun for name, begun, _ in map(of, trainings)}
    systems = [f"{variant}.{seed}" for variant in ("vanilla", "dep") for seed in "12"]
    assert pairs == {name: f"given/pretrained/{name}" for name in systems}
    assert forked("check", tmp_path / "own").returncode == 0
    for name in systems:
        assert (tmp_path / "own/given/pretrained" / name).resolve() == place / "models" / name
    assert (tmp_path / "own/spm.model").resolve() == place / "models/vanilla.1/spm.model"
    assert not [line for line in lines if line.startswith("synmt vocab")]
    assert {option["--preset"] for *_, option in map(of, trainings)} == {"auto"}


def test_one_model_may_begin_all_trainings_and_gets_variants(init, place, forked, tmp_path):
    assert init("models/vanilla.1", "vanilla,pascal,rel").returncode == 0
    for link in (tmp_path / "own/given/pretrained").iterdir():
        assert link.resolve() == place / "models/vanilla.1"
    trainings, _ = dry(tmp_path / "own", forked)
    assert len(trainings) == 6


@pytest.mark.long
def test_make_trains_these_models_further(init, place, forked, tmp_path):
    """The new runs have the sizes of these models; with another model, a training begins anew."""
    assert init(EACH, "dep").returncode == 0
    folder = tmp_path / "own"
    text = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(f"{text}max_steps = 2\n")
    line = "make runs/dep.2.trained"
    done = shell(line, folder, timeout=250, first=forked.folder)
    assert done.returncode == 0, done.stderr.decode()
    made = tomllib.loads((folder / "runs/dep.2/config.toml").read_text())
    weights = place / "models/dep.2/model.safetensors"
    assert made["pretrained"]["run"] == "given/pretrained/dep.2"
    assert made["pretrained"]["sha256"] == sha256(str(weights))
    assert made["model"]["d_model"] == 16
    assert b"is up to date" in shell(line, folder, first=forked.folder).stdout
    link = folder / "given/pretrained/dep.2"
    link.unlink()
    link.symlink_to(place / "models/dep.1")
    done = shell(line, folder, first=forked.folder)
    assert done.returncode == 0, done.stderr.decode()
    assert len([*(folder / "runs/old").glob("dep.2.*.inputs")]) == 1
    again = tomllib.loads((folder / "runs/dep.2/config.toml").read_text())
    assert again["pretrained"]["sha256"] != made["pretrained"]["sha256"]


@pytest.mark.parametrize(
    ("pretrained", "variants", "status", "message"),
    [
        (EACH, "vanilla,rel", 66, "models/rel.1 is not a run directory"),
        ("models/vanilla.1/config.toml", "rel", 66, "models/vanilla.1/config.toml"),
        ("models/dep.{seed}", "vanilla", 78, "has variant = 'dep', not 'vanilla'; a variant can"),
        ("models/dep.1", "dep,pascal", 78, "models/dep.1 has variant = 'dep', not 'pascal'"),
        ("models/vanilla.1", "gcn", 78, "'vanilla', whose vocabulary is not made for gcn"),
        ("models/vanilla.1", "multitask", 78, "whose vocabulary is not made for multitask"),
    ],
)
def test_models_that_do_not_fit_are_refused(init, tmp_path, pretrained, variants, status, message):
    done = init(pretrained, variants, "--tgt-parser", "en.udpipe")
    assert done.returncode == status
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "own").exists()


def trained(place, forked, name, records, *options):
    """Trains one more model, of the variant rel, with records of its own."""
    run = place / "models" / name
    data = ("--train", records, "--dev", records, "--run", run, "--max-steps", 1)
    size = ("--preset", "tiny", "--threads", 1, "--set", "metric=loss", "--set", "d_model=16")
    assert forked("train", "--variant", "rel", *size, *data, *options).returncode == 0


def test_models_of_other_vocabularies_are_refused(init, place, forked, tmp_path):
    text = [place / "own.en", place / "own.de"]
    for name, side in (("source", 0), ("target", 1)):
        spm = ("vocab", "train", "--size", 150, "-o", place / f"{name}.model", text[side])
        assert forked(*spm).returncode == 0
    made = ("featurize", "--from", "text", "--tgt", text[1], "--spm", place / "source.model")
    assert forked(*made, "-o", place / "one.jsonl", text[0]).returncode == 0
    both = ("--tgt-spm", place / "target.model")
    assert forked(*made, *both, "-o", place / "two.jsonl", text[0]).returncode == 0
    source = ("--spm", place / "source.model")
    trained(place, forked, "rel.1", place / "one.jsonl", *source)
    untied = ("--set", "tied=decoder")
    trained(place, forked, "two", place / "two.jsonl", *source, *both, *untied)
    done = init("models/{variant}.1", "vanilla,rel")
    assert done.returncode == 78
    assert b"models/rel.1 has vocabulary " in done.stderr
    assert b"an experiment has one for all models\n" in done.stderr
    done = init("models/two", "rel")
    assert done.returncode == 78
    assert b"models/two has a vocabulary for each language" in done.stderr
    assert not (tmp_path / "own").exists()


def test_models_of_other_sizes_are_told(init, place, forked, example_folder):
    data = ("--spm", example_folder / "spm.model")
    trained(place, forked, "rel.2", example_folder / "train.jsonl", *data)
    (place / "sizes").mkdir()
    for link, name in (("vanilla", "vanilla.1"), ("rel", "rel.2")):
        (place / "sizes" / link).symlink_to(place / "models" / name)
    done = init("sizes/{variant}", "vanilla,rel")
    assert done.returncode == 0
    message = "warning: sizes/vanilla and sizes/rel differ in [model] of config.toml, which scores"
    assert message in done.stderr.decode()
