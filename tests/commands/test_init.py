"""`synmt init` as a user runs it: the folder it writes, and what make does there."""

import gzip
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest
from support.program import ENVIRONMENT, shell

SMALL = """
[model]
d_model = 16
d_ff = 16
n_heads = 2
encoder_layers = 1
decoder_layers = 1
[training]
max_steps = 2
validate_every = 2
batch_tokens = 300
precision = "fp32"
metric = "loss"
"""


@pytest.fixture(scope="module")
def given(example_folder, tmp_path_factory, forked):
    """A folder with 200 pairs, in files whose names have spaces, and parsers of both languages."""
    folder = tmp_path_factory.mktemp("given text")
    script = f"""
    head -200 {example_folder}/train.en > 'my text.en'
    head -200 {example_folder}/train.de | gzip > 'my text.de.gz'
    cp {example_folder}/en.udpipe 'my parser'
    synmt parser train --tokenizer-options 'epochs=1;segment_size=10' -o de.udpipe \\
      {example_folder}/dev.de.conllu
    """
    done = shell(script, folder, first=forked.folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder


TEXT = ("--src", "my text.en", "--tgt", "my text.de.gz")
PARSERS = ("--parser", "my parser", "--tgt-parser", "de.udpipe")
PLAIN = ("--variants", "vanilla")
HELD_OUT = ("--test-src", "short", "--test-tgt", "short too", "--dev-src", "short", "--dev-tgt")
VARIANTS = ("vanilla", "pascal", "linearized")
SETS = ("train", "dev", "test")


def make(folder, forked, *arguments):
    done = shell(f"make {' '.join(arguments)}", folder, timeout=250, first=forked.folder)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


@pytest.mark.long
def test_make_goes_from_text_to_scores_and_makes_again_what_changed(run, forked, given, tmp_path):
    variants = "vanilla,pascal,linearized,multitask,mixed-encoder"
    folder = tmp_path / "e x"
    done = run("init", folder, *TEXT, *PARSERS, "--variants", variants, "--seeds", 1, cwd=given)
    assert done.returncode == 0
    assert b"20 pairs each for dev and test, chosen by a hash" in done.stderr
    (folder / "config.toml").write_text(SMALL)
    rules = folder / "Makefile"
    text = rules.read_text()
    for name, value in {"PRESET": "tiny", "VOCABULARY": "290", "BEAM": "2"}.items():
        text = re.sub(f"(?m)^{name} := .*", f"{name} := {value}", text)
    rules.write_text(text)
    make(folder, forked)
    scores = (folder / "scores.txt").read_text()
    for variant in variants.split(","):
        assert variant in scores
        assert len((folder / f"output/{variant}.1.txt").read_bytes().split(b"\n")) == 21
    assert "Trainings" not in scores  # each has one validation, which shows no trend
    judged = (folder / "trees.txt").read_text()
    assert re.fullmatch(r"system\tUAS\tLAS\nlinearized.1\t[0-9.]+\t[0-9.]+\n", judged)
    report = (folder / "report.html").read_text()
    assert report.count("<svg") > 20  # figures, and each tree
    tuned = re.search(r'<section id="tuned">.*?</section>', report, re.DOTALL).group()
    assert re.findall(r"<bdi>(.*?)</bdi>", tuned) == ["vanilla", "linearized"]
    assert "Weight of syntax by layer" in report
    assert "Attention in segment" in report
    assert "Nothing to be done" in make(folder, forked)
    # A training goes on when it may take more steps.
    (folder / "config.toml").write_text(SMALL.replace("max_steps = 2", "max_steps = 3"))
    make(folder, forked, "output/vanilla.1.txt")
    assert not (folder / "runs/old").exists()
    log = (folder / "runs/vanilla.1.log").read_text()
    assert log.index("step 2 ") < log.index("resuming") < log.index("step 3 ")


@pytest.mark.long
def test_make_compares_models_of_a_language_without_spaces(run, forked, given, tmp_path):
    """Validation, tuning and scores by characters, and no pair is lost."""
    lines = gzip.decompress((given / "my text.de.gz").read_bytes()).decode().splitlines()
    han = {word: chr(0x4E00 + i) for i, word in enumerate(dict.fromkeys(" ".join(lines).split()))}
    unspaced = ["".join(han[word] for word in line.split()) + "。" for line in lines]
    (tmp_path / "zh").write_text("".join(line + "\n" for line in unspaced))
    folder = tmp_path / "e"
    options = ("--src", given / "my text.en", "--tgt", tmp_path / "zh", "--seeds", 1)
    done = run("init", folder, *options, "--variants", "vanilla,rel", "--preset", "tiny")
    assert done.returncode == 0, done.stderr.decode()
    settings = (folder / "config.toml").read_text()
    small = SMALL.replace('metric = "loss"', 'tokenize = "zh"')
    (folder / "config.toml").write_text(small)
    make(folder, forked, "BEAM=2", "LENPENS=0.6:0.8")
    assert 'tokenize = "zh"' in settings
    assert 'tokenize = "zh"' in (folder / "runs/vanilla.1/config.toml").read_text()
    assert "|tok:zh|" in (folder / "scores.txt").read_text()
    tuned = json.loads((folder / "output/vanilla.1.lenpen.json").read_text())
    assert tuned["tokenize"] == "zh"
    kept = {*(folder / "text/train.tgt").read_text().splitlines()}
    held_out = [(folder / f"text/{name}.tgt").read_text().splitlines() for name in SETS[1:]]
    assert kept == {*unspaced}.difference(*held_out)


# In place of synmt: writes the files that a command would, and prints the command.
STAND_IN = """\
#!/bin/bash
if [ "$*" = "check config.toml" ]; then
  ! grep -q d_modle config.toml
  exit
fi
case " $* " in *" smal "*) echo no such preset; exit 1 ;; esac
case "$*" in "analyze attention"*) cat > /dev/null ;; esac  # the one that reads a pipe
echo "synmt $*" >&2
for word; do
  case $option in
    -o | --tgt-out | --trees-out | --run)
      case $1 in train) word+=/config.toml ;; average) word+=/model.safetensors ;; esac
      mkdir -p "$(dirname "$word")"
      echo written > "$word" ;;
  esac
  option=$word
done
"""


@pytest.fixture
def commands(run, given, tmp_path):
    """`commands()` runs make in an experiment and returns its synmt commands, in order."""
    program = tmp_path / "bin/synmt"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    sets = [f"--{name}-{side}" for name in ("dev", "test") for side in ("src", "tgt")]
    held_out = [shutil.copy(given / name, tmp_path) for name in ("my text.en", "my text.de.gz")]
    options = [*zip(sets, held_out * 2, strict=True)]
    options = [*itertools.chain(*options), "--variants", ",".join(VARIANTS), "--seeds", 2]
    done = run("init", tmp_path / "e", *TEXT, *PARSERS, *options, cwd=given)
    assert done.returncode == 0, done.stderr.decode()

    def made(*arguments):
        line = " ".join(("make -s", *arguments, "2>&1"))
        done = shell(line, tmp_path / "e", first=program.parent)
        assert done.returncode == 0, done.stdout.decode()
        lines = done.stdout.decode().splitlines()
        return [line for line in lines if line.startswith("synmt ")]

    made.folder = tmp_path / "e"
    return made


def trained(commands):
    trainings = [line for line in commands if line.startswith("synmt train ")]
    return [re.search(r"--run runs/(\S+)", line)[1] for line in trainings]


def translated(commands):
    translations = [line for line in commands if line.startswith("synmt translate ")]
    return [re.search(r" -o output/(\S+)\.txt", line)[1] for line in translations]


def test_make_makes_what_is_missing_and_no_more(commands):
    """After each change, only what depends on it is trained, translated and scored again."""
    models = [f"{variant}.{seed}" for variant in VARIANTS for seed in (1, 2)]
    made = commands()
    assert sorted(trained(made)) == sorted(translated(made)) == sorted(models)
    assert commands() == []
    rules = commands.folder / "Makefile"
    text = rules.read_text()
    rules.write_text(text.replace("SEEDS := 1 2", "SEEDS := 1 2 3"))
    made = commands()
    assert trained(made) == [f"{variant}.3" for variant in VARIANTS]
    assert len(translated(made)) == 9  # the length penalty is the best by the mean over seeds
    scores, table = (line for line in made if line.startswith("synmt score "))
    assert all(f"{one}=output/{one}.3.txt" in scores for one in VARIANTS)
    assert table == "synmt score --from-report scores.json -o scores.txt.new"
    assert (commands.folder / "scores.txt").exists()
    (commands.folder / "output/pascal.1.txt").unlink()
    made = commands()
    assert (trained(made), translated(made)) == ([], ["pascal.1"])
    rules.write_text(text)  # with the penalty of two seeds again
    made = commands()
    assert (trained(made), len(translated(made))) == ([], 6)
    assert commands("BY=length:5")[0].split(" --by ")[1].startswith("length:5 ")
    assert commands("-n", "BEAM=4", "METRICS=ter")
    rules.write_text(text.replace("METRICS := bleu", "METRICS := chrf"))
    made = commands()
    assert {line.split()[1] for line in made} == {"score", "info", "evaltree", "report"}
    _, scores, again = (line for line in made if line.startswith("synmt score "))
    assert "-M chrf," in scores
    assert again == table
    rules.write_text(text.replace("BEAM := 5", "BEAM := 4"))
    made = commands()
    assert (trained(made), len(translated(made))) == ([], 6)
    searches = [line.split(" --threads ")[0] for line in made if line.startswith("synmt tune ")]
    wanted = {"--beam 4 --lenpen 0.2:3.0 --patience 1"}
    assert {line.split(" ", 4)[4] for line in searches} == wanted
    narrower = text.replace("LENPENS := 0.2:3.0", "LENPENS := 0.2:1.6")
    rules.write_text(narrower.replace("PATIENCE := 1\n", "PATIENCE :=\n"))
    made = commands()
    assert (trained(made), len(translated(made))) == ([], 6)
    searches = [line.split(" --threads ")[0] for line in made if line.startswith("synmt tune ")]
    assert {line.split(" ", 4)[4] for line in searches} == {"--beam 5 --lenpen 0.2:1.6"}
    rules.write_text(text.replace("PRESET := tiny", "PRESET := small"))
    assert sorted(trained(commands())) == sorted(models)


def test_a_forecast_is_of_each_variant_and_trains_nothing(commands):
    asked = [line for line in commands("forecast") if line.startswith("synmt train ")]
    variants = [re.search("--variant ([a-z]+) --seed 1 ", line)[1] for line in asked]
    assert variants == [*VARIANTS]
    assert all(line.endswith(" --dry-run") and " --run " not in line for line in asked)
    assert os.listdir(commands.folder / "runs") == []


@pytest.mark.long
def test_a_forecast_counts_what_is_left_to_train(run, forked, given, tmp_path):
    """The total is the hours of each variant, times the trainings that make would start."""
    folder, variants = tmp_path / "e", ("--variants", "vanilla,pascal")
    done = run("init", folder, *TEXT, *PARSERS, *variants, "--seeds", 2, cwd=given)
    assert done.returncode == 0
    (folder / "config.toml").write_text(
        SMALL.replace("max_steps = 2", "max_steps = 100_000\nmax_epochs = 100_000")
    )
    chosen = ("PRESET=tiny", "VOCABULARY=290")

    def forecast(*more):
        shown = make(folder, forked, "forecast", *chosen, *more)
        assert "patience may end a training earlier" in shown
        rows = [re.split("  +", line) for line in shown.splitlines()[-5:-1]]
        assert [row[0] for row in rows] == ["variant", "vanilla", "pascal", "all"]
        return rows

    make(folder, forked, "data", *chosen)
    (folder / "runs/pascal.2").mkdir(parents=True)
    (folder / "runs/pascal.2.trained").touch()
    rows = forecast("OPTIONS_pascal='--set pascal.heads=2'")  # trained with other options
    assert [row[1] for row in rows[1:]] == ["2", "2", "4"]
    (folder / "runs/pascal.2.trained").touch()
    rows = forecast("OPTIONS_pascal='--set pascal.heads=2'")
    assert [row[1] for row in rows[1:]] == ["2", "1", "3"]
    seconds = []
    for variant in ("vanilla", "pascal"):
        text = (folder / f"data/{variant}.1.forecast").read_text()
        figures = dict(line.split("\t") for line in text.splitlines())
        assert figures["updates"] == "100000"
        seconds.append(float(figures["seconds per update"]) * 100_000)
    hours = float(rows[3][2].removesuffix(" h, one after another"))
    assert hours == pytest.approx((2 * seconds[0] + seconds[1]) / 3600, abs=0.05001)


def test_another_tokenizer_tunes_and_scores_again_but_trains_nothing(commands):
    made = commands()
    given = [line for line in made if line.split()[1] in ("tune", "score") and "-from" not in line]
    assert len(given) == 6  # two seeds of two systems; the reference's scores, and the systems'
    assert all("--tokenize 13a " in line for line in given)
    assert 'tokenize = "13a" ' in (commands.folder / "config.toml").read_text()
    made = commands("TOKENIZE=char")
    assert (trained(made), len(translated(made))) == ([], 6)
    given = [line for line in made if "--tokenize" in line]
    assert {line.split()[1] for line in given} == {"tune", "score"}
    assert all("--tokenize char " in line for line in given)
    assert commands("TOKENIZE=char") == []
    (scores, *_) = commands("TOKENIZE=char", "METRICS=chrf,ter")  # for these score refuses it
    assert "--tokenize" not in scores


def test_a_language_without_spaces_is_measured_in_characters(run, forked, tmp_path):
    """A Chinese line counts as one word against ten or more; no pair is rejected for its ratio."""
    text = {
        "en": [
            f"The man number {n} walks down the long street with two big dogs." for n in range(40)
        ],
        "zh": [f"第{n}个男人牵着两条大狗走在长长的街上。" for n in range(40)],
        "ja": [f"{n}番の男性は二匹の大きな犬を連れて長い通りを歩いています。" for n in range(40)],
    }
    for name, lines in text.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    for src, tgt, tokenize, values in (
        ("en", "zh", "zh", ("0.9995", "bleu,chrf", "length:10,20,30,40", "600 --ratio 20")),
        ("zh", "en", "13a", ("0.9995", "bleu,chrf,ter", "chars:20,40,60,80", "600 --ratio 20")),
        ("zh", "ja", "char", ("0.9995", "bleu,chrf", "chars:20,40,60,80", "200 --ratio 9")),
    ):
        folder = tmp_path / f"{src}-{tgt}"
        options = ("--src", src, "--tgt", tgt, *PLAIN, "--seeds", 1)
        done = run("init", folder, *options, cwd=tmp_path)
        told = done.stderr.decode()
        letters = {"zh": "Han characters without spaces", "char": "kana without spaces"}
        has = letters.get(tokenize, "spaces between words")
        line = f"tokenizer {tokenize}: the target has {has}; --tokenize NAME chooses another\n"
        assert (done.returncode, line in told) == (0, True)
        assert "lengths are in characters, not words: the " in told
        rules = (folder / "Makefile").read_text()
        coverage, metrics, by, limits = values
        limits = f"--unit chars --max-len {limits}"
        chosen = {"COVERAGE": coverage, "METRICS": metrics, "BY": by, "LIMITS": limits}
        for name, value in chosen.items():
            assert f"\n{name} := {value}\n" in rules
        assert f"\nTOKENIZE := {tokenize}\n" in rules
        assert "\n# Lengths are in characters: the " in rules
        settings = tomllib.loads((folder / "config.toml").read_text())
        assert settings["training"]["tokenize"] == tokenize
        make(folder, forked, "text/train.src")
        assert len((folder / "text/train.src").read_bytes().splitlines()) == 32


def test_search_is_exact_unless_a_variant_writes_trees(run, given, tmp_path):
    """Then it would take too long, and all systems search as fairseq does."""

    def search(variants):
        folder = tmp_path / variants
        done = run("init", folder, *TEXT, *PARSERS, "--variants", variants, cwd=given)
        assert done.returncode == 0, done.stderr.decode()
        text = (folder / "Makefile").read_text()
        told = re.search(r"patience 1: (.*);", done.stderr.decode())
        return re.findall(r"(?m)^(?:LENPENS|PATIENCE) :=.*", text), told and told[1]

    assert search("pascal,bitran") == (["LENPENS := 0.2:1.6", "PATIENCE :="], None)
    wide = ["LENPENS := 0.2:3.0", "PATIENCE := 1"]
    assert search("vanilla,gcn") == (wide, "gcn writes trees")
    assert search("linearized,parent") == (wide, "linearized, parent write trees")


def test_a_tokenizer_that_is_named_is_taken_as_it_is(run, given, tmp_path):
    done = run("init", tmp_path / "e", *TEXT, *PLAIN, "--tokenize", "intl", cwd=given)
    assert (done.returncode, b"synmt init: tokenizer" in done.stderr) == (0, False)
    assert "\nTOKENIZE := intl\n" in (tmp_path / "e/Makefile").read_text()
    assert 'tokenize = "intl" ' in (tmp_path / "e/config.toml").read_text()
    (tmp_path / "zh").write_text("一个男人在街上走路。\n" * 200)
    unfit = ("--src", given / "my text.en", "--tgt", tmp_path / "zh", *PLAIN, "--tokenize", "13a")
    done = run("init", tmp_path / "f", *unfit, cwd=given)
    warning = b"warning: the target has Han characters without spaces, whose clauses tokenizer 13a"
    assert (done.returncode, warning in done.stderr) == (0, True)


@pytest.mark.long
def test_ctrl_c_says_that_the_training_was_saved_and_goes_on(run, forked, given, tmp_path):
    """Every process of the terminal gets the signal, also those that show and log the messages."""
    folder = tmp_path / "e"
    assert run("init", folder, *TEXT, *PLAIN, "--seeds", 1, cwd=given).returncode == 0
    settings = re.sub("(max_steps|validate_every) = 2", r"\1 = 99999", SMALL)
    (folder / "config.toml").write_text(f"{settings}save_every = 1\n")
    chosen = ("VOCABULARY=290", "PRESET=tiny")
    make(folder, forked, "data", *chosen)
    with subprocess.Popen(
        ["make", "runs/vanilla.1.trained", *chosen],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        while not list(folder.glob("runs/vanilla.1/checkpoints/*")) and process.poll() is None:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=60)[0].decode()
    assert process.returncode != 0
    ending = r"stopped at step [0-9,]+ \(signal\) and saved; the same command resumes\n"
    assert re.search(f"(?m)^vanilla.1: {ending}", said)
    assert re.search(ending, (folder / "runs/vanilla.1.log").read_text())


def test_each_set_is_used_for_what_it_is_for_and_each_seed_is_another_model(commands):
    made = [shlex.split(line) for line in commands()]
    assert trained(map(shlex.join, made)), "there are trainings to look at"
    for _, command, *words in made:
        option = dict(itertools.pairwise(words))
        if command == "train":
            run, seed = option["--run"].rsplit(".", 1)
            assert (option["--seed"], option["--variant"]) == (seed, run.removeprefix("runs/"))
            assert option["--train"] in ("data/train.jsonl", "data/train.trees.jsonl")
            assert option["--dev"] in ("data/dev.jsonl", "data/dev.trees.jsonl")
        elif command in ("tune", "translate"):
            assert words[-1] == f"data/{'dev' if command == 'tune' else 'test'}.jsonl"
        elif command == "filter":
            pairs = [*itertools.pairwise(words)]
            held_out = {value for name, value in pairs if name == "--exclude"}
            assert held_out == {f"text/{s}.{side}" for s in SETS[1:] for side in ("src", "tgt")}
            assert ("--dedup", "pair") in pairs
            assert (option["-o"], option["--tgt-out"]) == ("text/train.src", "text/train.tgt")
        elif command == "score" and "--src" in option:
            assert (option["--src"], "text/test.tgt" in words) == ("text/test.src", True)
    wanted = {"filter", "train", "tune", "translate", "score"}
    assert wanted <= {command for _, command, *_ in made}


def test_a_variant_that_is_left_out_is_not_needed(commands):
    """Even the first, on which the length penalty is tuned, or one with trees. It may come back."""
    commands()
    rules = commands.folder / "Makefile"
    text = rules.read_text()

    def left(variants):
        rules.write_text(re.sub("(?m)^VARIANTS := .*", f"VARIANTS := {variants}", text))
        made = commands()
        return [line for line in made if line.split()[1] not in ("average", "score", "info")]

    tuned, again, *translations, report = left("pascal")
    assert (tuned.split()[3], again.split()[3]) == ("models/pascal.1", "models/pascal.2")
    assert translated(translations) == ["pascal.1", "pascal.2"]
    assert all("--tuned output/pascal.1.lenpen.json" in line for line in translations)
    assert "linearized" not in report
    assert "--awsl" in report
    *evaluated, report = left("vanilla linearized")
    assert translated(evaluated) == ["vanilla.1", "vanilla.2"]
    assert "--awsl" not in report
    assert "--tuned vanilla=" in report
    assert left("linearized")[-1].count("--tuned") == 2
    assert "--tgt-trees" not in left("vanilla")[-1]
    assert translated(left("pascal linearized")) == ["pascal.1", "pascal.2"]
    assert len(translated(left("vanilla pascal linearized"))) == 4  # with the penalty of vanilla
    assert commands() == []


def test_a_model_of_other_settings_makes_way_and_may_come_back(commands):
    commands()
    config, runs = commands.folder / "config.toml", commands.folder / "runs"
    first = config.read_text()
    config.write_text(f"# slower\n{first}")
    assert commands() == []
    for text in (
        first.replace("patience = 8", "patience = 9"),
        first.replace("patience = 8", "  max_steps=9# fewer"),
    ):
        config.write_text(text)
        assert len(trained(commands())) == 6
        assert not (runs / "old").exists()
    os.utime(commands.folder / "data/train.jsonl")  # only newer; linearized has other records
    assert len(trained(commands())) == 4
    assert not (runs / "old").exists()
    config.write_text(f"{first}d_modle = 3\n")  # which `synmt check` finds
    with pytest.raises(AssertionError, match=r"vanilla.1.trained\] Error"):
        commands()
    assert not (runs / "old").exists()
    for variant in VARIANTS:
        (runs / f"{variant}.1/first").touch()
    config.write_text(f"{first}lr = 0.1\n")
    assert len(trained(commands())) == 6
    assert len(os.listdir(runs / "old")) == 12  # six runs, and what each was made of
    assert not list(runs.glob("*.1/first"))
    config.write_text(first)
    assert len(trained(commands())) == 6  # which end at once
    assert len(list(runs.glob("*.1/first"))) == 3
    assert len(os.listdir(runs / "old")) == 12
    rules = commands.folder / "Makefile"
    text = rules.read_text()
    rules.write_text(text.replace("PRESET := tiny", "PRESET := smal"))
    with pytest.raises(AssertionError, match="no such preset"):
        commands()
    assert len(list(runs.glob("*.1/first"))) == 2  # the model to be trained has made way
    rules.write_text(text)
    assert len(trained(commands())) == 6
    assert len(list(runs.glob("*.1/first"))) == 3


def test_a_change_during_a_training_counts(commands):
    commands()
    begun = max(path.stat().st_mtime_ns for path in (commands.folder / "runs").glob("*.inputs"))
    config = commands.folder / "config.toml"
    config.write_text(f"{config.read_text()}lr = 0.1\n")
    os.utime(config, ns=(begun + 1, begun + 1))  # while the last training ran
    assert len(trained(commands())) == 6
    assert commands() == []


def test_a_model_in_runs_old_may_be_deleted(commands):
    commands()
    config = commands.folder / "config.toml"
    first = config.read_text()
    config.write_text(f"{first}lr = 0.1\n")
    commands()
    for path in (commands.folder / "runs/old").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    config.write_text(first)
    assert len(trained(commands())) == 6


def test_one_variant_may_have_options(commands):
    commands()
    rules = commands.folder / "Makefile"
    text = rules.read_text()
    rules.write_text(f"OPTIONS_pascal := --set pascal.heads=1\n{text}")
    made = commands()
    assert trained(made) == ["pascal.1", "pascal.2"]
    trainings = [line for line in made if line.startswith("synmt train ")]
    assert all(" --set pascal.heads=1 " in line for line in trainings)
    assert len([*(commands.folder / "runs/old").glob("pascal.?.*.inputs")]) == 2
    assert commands() == []
    rules.write_text(text)
    made = commands()
    assert trained(made) == ["pascal.1", "pascal.2"]  # which come back
    assert len([*(commands.folder / "runs/old").glob("*.inputs")]) == 2


def test_options_with_quotes_and_parentheses_are_watched(commands):
    rules = commands.folder / "Makefile"
    text = rules.read_text()
    commands()
    for heads in (1, 2):
        rules.write_text(f"OPTIONS_pascal := --set 'pascal.heads={heads}' --set \"a=(')\"\n{text}")
        made = commands()
        assert trained(made) == ["pascal.1", "pascal.2"]
        assert f" --set pascal.heads={heads} --set a=(') " in made[0]
        assert commands() == []


def test_a_model_whose_folder_was_deleted_is_trained_again(commands):
    commands()
    shutil.rmtree(commands.folder / "runs/pascal.2")
    made = commands()
    assert (trained(made), translated(made)) == (["pascal.2"], ["pascal.2"])
    assert commands() == []


def test_scores_depend_on_the_files_that_by_names(commands):
    def scored(made):
        return [line for line in made if line.startswith("synmt score -j")]

    labels = commands.folder / "its labels"
    commands()
    (commands.folder / "a.labels").write_text("one\n")
    labels.write_text("one\n")
    by = """BY='length:5 --by labels:a.labels --by labels:"its labels" --by rare:text/train.src'"""
    reference, systems = scored(commands(by))
    wanted = "--by length:5 --by labels:a.labels --by labels:its labels --by rare:text/train.src"
    assert all(f" {wanted} --src text/test.src " in line for line in (reference, systems))
    assert commands(by) == []
    (commands.folder / "a.labels").write_text("two\n")
    assert len(scored(commands(by))) == 2
    by = """BY='labels:"a.labels" --by "length:5"'"""
    assert " --by labels:a.labels --by length:5 --src " in scored(commands(by))[1]
    (commands.folder / "a.labels").write_text("three\n")
    assert len(scored(commands(by))) == 2
    for by, options in (("BY=", " -o"), ("BY=labels:a.labels", " --by labels:a.labels -o")):
        (line, _) = scored(commands(by))
        assert f"--tokenize 13a{options} " in line


def test_a_link_to_another_file_is_a_change_if_that_is_older(commands, tmp_path):
    commands()
    link = commands.folder / "src.udpipe"
    older = tmp_path / "older.udpipe"
    older.write_bytes(link.read_bytes() + b"other")
    os.utime(older, (0, 0))
    link.unlink()
    link.symlink_to(older)
    made = commands()
    assert len([line for line in made if line.startswith("synmt parse -m src.udpipe")]) == 3
    assert {"pascal.1", "pascal.2"} <= {*trained(made)}
    assert commands() == []


def test_other_limits_of_length_change_the_text_to_train_on(commands):
    made = commands()
    assert [line for line in made if line.startswith("synmt filter --from text --max-len 100 ")]
    made = commands("LIMITS='--max-len 50'")
    assert [line for line in made if line.startswith("synmt filter --from text --max-len 50 --")]
    assert len([line for line in made if line.startswith("synmt featurize ")]) > 2


def test_trees_are_judged_again_without_a_variant_that_is_left_out(commands):
    def judged(made):
        trees = [line.split()[-1] for line in made if line.startswith("synmt evaltree ")]
        return [Path(one).stem for one in trees]

    both = ["linearized.1", "linearized.2"]
    assert judged(commands()) == both
    assert judged(commands("SEEDS=2")) == both[1:]
    assert judged(commands()) == both
    assert judged(commands("VARIANTS='vanilla linearized'")) == both
    assert judged(commands("VARIANTS='vanilla linearized'")) == []


def test_variants_and_seeds_may_be_chosen_on_the_command_line(commands):
    commands()
    made = commands("VARIANTS='vanilla pascal'")
    assert trained(made) == []
    [scores] = (line for line in made if line.startswith("synmt score -j"))
    assert "pascal=" in scores
    assert "linearized=" not in scores
    made = commands("SEEDS=2")
    assert [line for line in made if "synmt analyze awsl -m models/pascal.2" in line]
    assert [line for line in made if "synmt analyze attention -m models/pascal.2" in line]


def test_trees_to_look_at_first(run, forked, given, tmp_path):
    """The lines that init prints are commands, which draw trees of the given text."""
    variants = ("--variants", "rel,linearized")
    done = run("init", tmp_path / "e", *TEXT, *PARSERS, *variants, cwd=given)
    advice = re.findall(r"look at trees of the (\w+) before you train: (.*)", done.stderr.decode())
    assert [side for side, _ in advice] == ["source", "target"]
    for _, command in advice:
        shown = shell(f"{command} || true", given, first=forked.folder)  # head ends the pipe early
        assert shown.stdout.decode().startswith("# 1  ")
        assert shown.stderr == b""


def test_the_name_of_a_text_is_no_option_of_the_advice(run, forked, given, tmp_path):
    for name, here in (("my text.en", "-t.en"), ("my text.de.gz", "-t.de.gz")):
        shutil.copy(given / name, tmp_path / here)
    options = ("--src", "-t.en", "--tgt", "-t.de.gz", "--parser", given / "my parser")
    done = run("init", "e", *options, "--variants", "pascal", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    (command,) = re.findall(r"before you train: (.*)", done.stderr.decode())
    shown = shell(f"{command} || true", tmp_path, first=forked.folder)
    assert (shown.stdout[:5], shown.stderr) == (b"# 1  ", b"")


@pytest.mark.parametrize("sets", [(), HELD_OUT[:4]])
def test_check_misses_the_inputs_that_make_misses(run, given, tmp_path, sets):
    """Each file of a new experiment, all of them deleted; sets are split off, or given."""
    for name in ("short", "short too"):
        (given / name).write_text(f"{name}\n")
    options = (*TEXT, *PARSERS, *sets, "--variants", "pascal,linearized")
    done = run("init", tmp_path / "e", *options, cwd=given)
    assert done.returncode == 0, done.stderr.decode()
    assert run("check", tmp_path / "e").returncode == 0
    paths = [one for one in (tmp_path / "e").rglob("*") if one.is_symlink()]
    assert len(paths) == (6 if sets else 4)
    paths = sorted((*paths, tmp_path / "e/config.toml"))
    for path in paths:
        path.rename(tmp_path / "aside")
        made = shell("make -n", tmp_path / "e").stderr.decode()
        assert f"No rule to make target '{path.relative_to(tmp_path / 'e')}'" in made
        (tmp_path / "aside").rename(path)
    for path in paths:
        path.unlink()
    checked = run("check", tmp_path / "e").stdout.decode()
    missed = [f"{path}: not there, and make has no rule for it\n" for path in paths]
    assert checked == "".join(missed)


def test_variants_and_seeds_that_make_cannot_take_are_named(run, given, tmp_path):
    done = run("init", tmp_path / "e", *TEXT, *PARSERS, "--variants", "rel, dep", cwd=given)
    assert done.returncode == 0, done.stderr.decode()
    for change, said in (
        (
            "VARIANTS='rel dpe'",
            "VARIANTS: no rules here for dpe, but for rel dep; the comment above VARIANTS says how"
            " to add it.",
        ),
        ("VARIANTS=", "VARIANTS is empty."),
        ("VARIANTS='rel dep rel'", "VARIANTS names one twice."),
        ("SEEDS=1,2", "SEEDS: expected whole numbers with spaces between them, not 1,2."),
        ("SEEDS=", "SEEDS: expected whole numbers with spaces between them, not ."),
        ("SEEDS='1 01'", "SEEDS: expected whole numbers with spaces between them, not 1 01."),
        ("SEEDS='2 1 2'", "SEEDS names one twice."),
    ):
        done = shell(f"make -n {change}", tmp_path / "e")
        assert done.returncode == 2
        assert b"synmt " not in done.stdout  # nothing that would run
        assert f" *** {said}  Stop." in done.stderr.decode()
    assert shell("make -n SEEDS=' 2  10 '", tmp_path / "e").returncode == 0


def test_what_scores_cannot_take_ends_make_before_it_trains(run, forked, given, tmp_path):
    folder = tmp_path / "e"
    options = ("--variants", "vanilla,rel", "--seeds", 1)
    done = run("init", folder, *TEXT, *options, cwd=given)
    assert done.returncode == 0, done.stderr.decode()
    for mistake, said in (("BY=lenght:5", "lenght"), ("METRICS=bleu,trf", "trf")):
        line = f"make VOCABULARY=290 {mistake} runs/vanilla.1.trained"
        done = shell(line, folder, timeout=120, first=forked.folder)
        assert done.returncode == 2
        assert re.search(rf"synmt score: .*{said}", done.stderr.decode())
        assert os.listdir(folder / "runs") == []
    make(folder, forked, "VOCABULARY=290", "data/scorable")
    assert "100.00" in (folder / "data/scorable").read_text()


def test_what_cannot_give_an_answer_is_said(run, given, tmp_path):
    options = ("--variants", "rel", "--seeds", 2, *PARSERS[:2])
    done = run("init", tmp_path / "e", *TEXT, *options, cwd=given)
    warnings = [line for line in done.stderr.decode().splitlines() if "warning" in line]
    assert [line.split("warning: ")[1] for line in warnings][:3] == [
        "rel alone is compared with nothing: name another variant first",
        "2 seeds can hardly show how training runs vary: take --seeds 3, or better 5",
        "20 test pairs are few: small differences will not show; --test-src and --test-tgt take a "
        "larger set",
    ]
    assert warnings[3].endswith(
        "200 training pairs are few: translations will be poor, and their differences say little "
        "about models trained on more; --pretrained begins with such models"
    )
    assert "2 training runs (rel); 20 pairs each for dev and test" in done.stderr.decode()
    done = run(
        "init", tmp_path / "f", *TEXT, *PARSERS[:2], "--variants", "rel,dep,pascal", cwd=given
    )
    assert "9 training runs (dep, pascal against rel)" in done.stderr.decode()
    assert "alone" not in done.stderr.decode()
    assert "seeds" not in done.stderr.decode()


def test_the_sizes_of_given_sets_are_told(run, given, tmp_path):
    sets = []
    for part, n in (("dev", 7), ("test", 1)):
        for side in ("src", "tgt"):
            file = tmp_path / f"{part}.{side}"
            file.write_text("".join(f"{part} {i}\n" for i in range(n)))
            sets += [f"--{part}-{side}", file]
    done = run("init", tmp_path / "e", *TEXT, "--variants", "rel", *sets, cwd=given)
    assert done.returncode == 0, done.stderr.decode()
    told = done.stderr.decode().splitlines()[0]
    assert told.endswith("200 pairs, 3 training runs (rel); 7 pairs for dev, 1 pair for test")


def test_text_that_looks_like_records_is_text(run, given, tmp_path, forked):
    for side, text in (("en", '{{"a": {}}}\n'), ("de", "{}\tThe first.\n")):
        (tmp_path / side).write_text("".join(text.format(i) for i in range(1, 41)))
    done = run("init", tmp_path / "e", "--src", tmp_path / "en", "--tgt", tmp_path / "de", *PLAIN)
    assert done.returncode == 0, done.stderr.decode()
    assert b"en looks like JSON; here each line is text to translate\n" in done.stderr
    make(tmp_path / "e", forked, "text/train.src")
    assert (tmp_path / "e/text/train.src").stat().st_size


def test_all_models_of_an_experiment_have_the_size_that_the_text_asks_for(run, tmp_path):
    """Records with trees or tasks have more tokens: with `--preset auto` models would be larger."""
    for side in ("en", "de"):
        (tmp_path / side).write_text("".join(f"{i:0395}\n" for i in range(20_200)))
    options = ["--src", tmp_path / "en", "--tgt", tmp_path / "de", *PLAIN]
    done = run("init", tmp_path / "e", *options)
    assert b"preset small: about 2,0" in done.stderr
    assert "PRESET := small\n" in (tmp_path / "e/Makefile").read_text()
    nowhere = {"PATH": str(tmp_path)}
    done = run("init", tmp_path / "f", *options, "--preset", "base", env=nowhere)
    assert b"make will not find synmt: activate its environment" in done.stderr
    assert "PRESET := base\n" in (tmp_path / "f/Makefile").read_text()


def test_without_trees_no_parser_is_needed_and_sets_may_be_given(run, forked, given, tmp_path):
    for name in ("dev.en", "dev.de"):
        (tmp_path / name).write_text("A dog sleeps.\n" * 2)
    sets = [f"--{s}-{side}" for s in ("dev", "test") for side in ("src", "tgt")]
    files = [tmp_path / "dev.en", tmp_path / "dev.de"] * 2
    options = [x for pair in zip(sets, files, strict=True) for x in pair]
    folder = tmp_path / "plain"
    done = run("init", folder, *TEXT, *options, "--variants", "vanilla,rel", cwd=given)
    assert done.returncode == 0
    assert b"warning: a file of the dev set is in the test set, too" in done.stderr
    script = make(folder, forked, "-n")
    assert "synmt parse" not in script
    assert "synmt split" not in script
    assert "featurize --from text" in script
    assert script.count("synmt train --preset") == 6
    make(folder, forked, "data", "VOCABULARY=200")
    assert len((folder / "data/dev.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([*TEXT, "--variants", "pascal"], 2, "pascal needs trees of the source: give --parser"),
        ([*TEXT, *PARSERS[:2], "--variants", "gcn"], 2, "gcn needs trees of the target: give"),
        ([*TEXT, "--variants", "pascl"], 2, "no variant 'pascl'; did you mean 'pascal'"),
        ([*TEXT, "--variants", "rel,rel"], 2, "--variants names 'rel' twice"),
        ([*TEXT, "--variants", ""], 2, "--variants names no variant"),
        ([*TEXT, "--variants", "rel", "--dev-src", "my text.en"], 2, "--dev-src needs --dev-tgt"),
        ([*TEXT, "--variants", "rel", "--test-tgt", "short"], 2, "--test-tgt needs --test-src"),
        (["--src", "my text.en", "--tgt", "./my text.en"], 2, "is both sides of the train set"),
        ([*TEXT, *HELD_OUT, "./my text.en"], 2, "in the dev set and in the text to train on"),
        (["--src", "my text.en", "--tgt", "none"], 66, "cannot read none"),
        (["--src", "my text.en", "--tgt", "."], 66, "cannot read ."),
        (["--src", "my text.en", "--tgt", "short"], 65, "short: 2 lines, but my text.en has 200"),
        (["--src", "empty", "--tgt", "also empty"], 65, "empty: no lines"),
        (["--src", "short", "--tgt", "nul"], 65, "nul:2: NUL character"),
        (["--src", "short", "--tgt", "short too"], 2, "--dev-src, --dev-tgt and --test-src, --"),
        ([*TEXT, "--parser", "short", "--variants", "pascal"], 69, "short"),
        ([*TEXT, "--preset", "tinny"], 2, "tinny"),
        ([*TEXT, "--tokenize", "zhh"], 2, "no tokenizer 'zhh'; there are 13a, none, char, intl"),
        (
            [*TEXT, "--src-trees", "short", "--variants", "pascal"],
            65,
            "short:1: 1 column, expected 10",
        ),
        (
            [*TEXT, "--src-trees", "trees", "--variants", "pascal"],
            65,
            "my text.en:1: no tree in trees has this text: ",
        ),
        ([*TEXT, "--src-trees", "none", "--variants", "pascal"], 66, "cannot read none"),
        (
            [*TEXT, "--tgt-trees", "trees", "--variants", "gcn"],
            65,
            "my text.de.gz:1: no tree in trees has this text: ",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(run, given, options, status, message):
    for name, text in {
        "short": "a\nb\n",
        "short too": "c\nd\n",
        "nul": "c\nd\0\n",
        "empty": "",
        "also empty": "",
        "trees": "# text = a\n1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n",
    }.items():
        (given / name).write_text(text)
    if "--variants" not in options:
        options = [*options, "--variants", "vanilla"]
    done = run("init", "bad", *options, cwd=given)
    assert done.returncode == status
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (given / "bad").exists()
    assert not [path for path in given.iterdir() if path.name.startswith(".")]


def chains(lines):
    """CoNLL-U in which the head of each word is the word before it."""
    trees = (
        "".join(f"{i}\t{w}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, w in enumerate(words, 1))
        for words in (line.split() for line in lines)
    )
    return "".join(f"# text = {line}\n{tree}\n" for line, tree in zip(lines, trees, strict=True))


def test_trees_that_there_are_take_the_place_of_a_parser(run, forked, given, tmp_path):
    lines = (given / "my text.en").read_text().splitlines()
    (given / "own trees").write_text(chains(lines))
    own = ("--src-trees", "own trees", "--variants", "pascal", "--seeds", "1")
    assert run("init", tmp_path / "e", *TEXT, *own, cwd=given).returncode == 0
    make(tmp_path / "e", forked, "data/dev.jsonl", "VOCABULARY=200")
    records = (tmp_path / "e/data/dev.jsonl").read_bytes().splitlines()
    assert len(records) == 20
    assert all(b'"heads":[-1,0,' in one for one in records)  # the chains above
    for name in ("data", "output"):  # git keeps no empty folder
        shutil.rmtree(tmp_path / "e" / name)
    make(tmp_path / "e", forked, "-n")
    assert not (tmp_path / "e/data").exists()
    make(tmp_path / "e", forked, "spm.model", "VOCABULARY=200")
    assert "--parser" not in make(tmp_path / "e", forked, "-n", "runs/pascal.1.trained")


def test_trees_of_the_target_take_the_place_of_its_parser(run, forked, given, tmp_path):
    """Trees of the test set are not needed; without a parser, no trees are judged."""
    lines = gzip.decompress((given / "my text.de.gz").read_bytes()).decode().splitlines()
    (given / "target trees").write_text(chains(lines))
    for side in ("en", "de"):
        (given / f"other.{side}").write_text("other words\n")
    own = ("--tgt-trees", "target trees", "--variants", "linearized", "--seeds", "1")
    test = ("--test-src", "other.en", "--test-tgt", "other.de")
    assert run("init", tmp_path / "e", *TEXT, *own, *test, cwd=given).returncode == 0
    make(tmp_path / "e", forked, "data/dev.trees.jsonl", "VOCABULARY=200")
    records = (tmp_path / "e/data/dev.trees.jsonl").read_bytes().splitlines()
    tokens = [token for one in records for token in json.loads(one)["transitions"]]
    assert len(records) == 20
    assert {token for token in tokens if "ARC" in token} == {"RIGHT-ARC:dep"}
    assert "trees.txt" not in make(tmp_path / "e", forked, "-n")
    both = (*own, *PARSERS[2:])
    assert run("init", tmp_path / "both", *TEXT, *both, cwd=given).returncode == 0
    commands = make(tmp_path / "both", forked, "-n")
    assert "synmt parse -m tgt.udpipe --known given/tgt.conllu" in commands
    assert "trees.txt" in commands


def test_parsers_that_were_confused_are_named(run, given, tmp_path):
    confused = ("--parser", "de.udpipe", "--tgt-parser", "my parser", "--variants", "pascal,parent")
    done = run("init", tmp_path / "e", *TEXT, *confused, cwd=given)
    problems = [one for one in done.stderr.decode().splitlines() if " knows only " in one]
    assert (done.returncode, len(problems)) == (0, 2)
    assert problems[0].startswith("synmt init: warning: de.udpipe knows only ")
    assert problems[1].startswith("synmt init: warning: my parser knows only ")
    assert all(one.endswith(" It fits the other side of the text.") for one in problems)
    right = ("--variants", "pascal,parent", *PARSERS)
    done = run("init", tmp_path / "right", *TEXT, *right, cwd=given)
    assert (done.returncode, b" knows only " in done.stderr) == (0, False)


def test_trees_for_some_lines_are_counted(run, given, tiny_udpipe, tmp_path):
    lines = (given / "my text.en").read_text().splitlines()
    (given / "few").write_text(f"# text = {lines[3]}\n1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n")
    own = ("--src-trees", "few", "--parser", tiny_udpipe, "--variants", "pascal")
    done = run("init", tmp_path / "e", *TEXT, *own, cwd=given)
    n = sum(line == lines[3] for line in lines)
    told = f"{n} of {len(lines)} source lines have a tree in few; others are parsed\n"
    assert (done.returncode, told in done.stderr.decode()) == (0, True)


@pytest.mark.parametrize(("given_set", "split_off"), [("test", "dev"), ("dev", "test")])
def test_a_set_not_given_is_split_off(run, forked, given, tmp_path, given_set, split_off):
    """No line of it or of the given set is trained on, and no pair twice."""
    lines = (given / "my text.en").read_text().splitlines(keepends=True)
    others = gzip.decompress((given / "my text.de.gz").read_bytes()).decode().splitlines(True)
    for side, text in (("en", lines), ("de", others)):
        (given / f"own.{side}").write_text("".join(text[:30]))
        (given / f"repeated.{side}").write_text("".join(text[:150] + text[:50]))
    own = (f"--{given_set}-src", "own.en", f"--{given_set}-tgt", "own.de")
    both = ("--src", "repeated.en", "--tgt", "repeated.de", *own)
    done = run("init", tmp_path / "e", *both, "--variants", "vanilla", cwd=given)
    assert done.returncode == 0
    assert f"20 pairs for {split_off}, chosen by a hash".encode() in done.stderr
    make(tmp_path / "e", forked, "text/train.src", f"text/{split_off}.src")
    sets = {}
    for name in SETS:
        files = [tmp_path / f"e/text/{name}.{side}" for side in ("src", "tgt")]
        sets[name] = [*zip(*(path.read_text().splitlines(True) for path in files), strict=True)]
    assert (len(sets[split_off]), sets[given_set]) == (20, [*zip(lines, others, strict=True)][:30])
    assert 0 < len(sets["train"]) == len(set(sets["train"])) <= 120
    for side in (0, 1):
        train, dev, test = ({pair[side] for pair in sets[name]} for name in SETS)
        assert not train & (dev | test) | dev & test


def test_variants_that_need_other_settings_are_named_before_make(run, given):
    combined = ("--variants", "vanilla,sisa+pascal,pascal+sisa,pascal+rel", *PARSERS[:2])
    done = run("init", "combined", *TEXT, *combined, cwd=given)
    assert done.returncode == 0
    warnings = [one for one in done.stderr.decode().splitlines() if "needs other" in one]
    name = "pascal+sisa"
    problem = f"synmt init: warning: {name} needs other settings, OPTIONS_{name} in the Makefile: "
    assert [one[: len(problem)] for one in warnings][1:] == [problem]
    assert "sisa+pascal needs other settings" in warnings[0]


def test_a_folder_needs_a_name(run, given):
    done = run("init", "", *TEXT, "--variants", "vanilla", cwd=given)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"EXPERIMENT is empty" in done.stderr


def test_a_name_is_what_the_system_makes_of_it(run, given, tmp_path):
    """`link/..` is the folder above the one that it links to."""
    (tmp_path / "far/deep").mkdir(parents=True)
    for name in ("my text.en", "my text.de.gz"):
        shutil.copy(given / name, tmp_path / "far")
    (tmp_path / "link").symlink_to("far/deep")
    text = ("--src", "link/../my text.en", "--tgt", "link/../my text.de.gz")
    done = run("init", "e", *text, "--variants", "vanilla", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "e/given/src").read_bytes() == (given / "my text.en").read_bytes()


def test_a_folder_that_exists_stays_as_it_is(run, given, tmp_path):
    (tmp_path / "here").mkdir()
    done = run("init", tmp_path / "here", *TEXT, "--variants", "vanilla", cwd=given)
    assert done.returncode == 73
    assert b"it already exists; name another folder, or see in its Makefile" in done.stderr
    assert not os.listdir(tmp_path / "here")


def test_folders_above_are_made(run, given, tmp_path):
    done = run("init", tmp_path / "not yet/here", *TEXT, "--variants", "vanilla", cwd=given)
    assert done.returncode == 0
    assert (tmp_path / "not yet/here/Makefile").is_file()
    (tmp_path / "file").touch()
    done = run("init", tmp_path / "file/here", *TEXT, "--variants", "vanilla", cwd=given)
    assert done.returncode == 73
    assert done.stderr.count(b"\n") == 1


def test_an_older_make_is_refused(run, given, tmp_path):
    folder = tmp_path / "old make"
    run("init", folder, *TEXT, "--variants", "vanilla", cwd=given)
    command = ["make", "-n", "-C", folder, ".FEATURES="]
    done = subprocess.run(command, capture_output=True, check=False)
    assert b"this needs GNU make 4.3 or newer" in done.stderr
