"""`synmt export` and `translate --engine`: CTranslate2 translates as synmt does, or is refused."""

import json

import pytest

pytest.importorskip("ctranslate2")


def ours(run, record):
    """The log-probability of each target piece, and of the end."""
    import torch

    from synmt_cli.core.model.modifier import Side
    from synmt_cli.core.run.building import load
    from synmt_cli.core.text.vocabulary import BOS, EOS

    model, vocabulary = load(run), run.vocabularies().source
    source, target = (vocabulary.ids(record[name]) for name in ("pieces", "tgt_pieces"))
    with torch.inference_mode():
        memory = model.encode(Side(torch.tensor([[*source, EOS]])))
        states, _ = model.decode(Side(torch.tensor([[BOS, *target]])), memory)
        found = model.logits(states)[0].log_softmax(-1)
    return found[torch.arange(len(target) + 1), torch.tensor([*target, EOS])].tolist()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_it_gives_every_piece_the_same_probability(forked, example_folder, tmp_path, norm):
    import ctranslate2

    from synmt_cli.core.run.directory import Run

    train = ["--train", example_folder / "train.jsonl", "--run", tmp_path / "r", "--preset", "tiny"]
    settings = ["--set", f"model.norm={norm}", "--set", "training.lr=0.05", "-q"]
    assert forked("train", *train, *settings, "--max-steps", 5).returncode == 0
    assert forked("export", "-m", tmp_path / "r", "-o", tmp_path / "ct2").returncode == 0
    records = (example_folder / "test.jsonl").read_bytes().splitlines()[:5]
    records = [json.loads(line) for line in records]
    model = ctranslate2.Translator(str(tmp_path / "ct2"))
    found = model.score_batch([r["pieces"] for r in records], [r["tgt_pieces"] for r in records])
    for record, one in zip(records, found, strict=True):
        assert one.log_probs == pytest.approx(ours(Run(tmp_path / "r"), record), abs=1e-3)


def test_a_decoder_of_trees_is_refused_and_nothing_is_left(forked, example_folder, tmp_path):
    done = forked("export", "-m", example_folder / "runs/trees", "-o", tmp_path / "ct2")
    assert done.returncode == 78
    assert b"a decoder that writes trees, which CTranslate2 lacks" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_distances_in_the_decoder_are_refused_and_the_advice_is_right(
    forked, example_folder, tmp_path
):
    """The decoder of rel is not plain, unless the run has the setting that the message names."""
    train = ("--variant", "dep+rel", "--train", example_folder / "train.jsonl", "--preset", "tiny")
    train = (*train, "--max-steps", 1, "-q")
    assert forked("train", *train, "--run", tmp_path / "both").returncode == 0
    done = forked("export", "-m", tmp_path / "both", "-o", tmp_path / "ct2")
    assert (done.returncode, (tmp_path / "ct2").exists()) == (78, False)
    problem, _, advice = done.stderr.decode().rstrip("\n").partition("; train with ")
    assert problem.endswith("both: a decoder that rel changes, which CTranslate2 lacks")
    assert advice == "--set rel.stack=encoder"
    assert forked("train", *train, *advice.split(), "--run", tmp_path / "one").returncode == 0
    assert forked("export", "-m", tmp_path / "one", "-o", tmp_path / "ct2").returncode == 0
    lines = [
        forked("translate", *options, *SEARCH, example_folder / "test.jsonl").stdout
        for options in (("-m", tmp_path / "ct2"), ("-m", tmp_path / "one"))
    ]
    assert scored(lines[0])[0] == scored(lines[1])[0]


SEARCH = ["--beam", 2, "--patience", 1, "--max-output-len", 9, "--format", "tsv", "-q"]


def scored(lines):
    """The translations with their numbers but without scores; and the scores."""
    rows = [line.split(b"\t") for line in lines.splitlines()]
    return [(number, words) for number, _, words in rows], [float(score) for _, score, _ in rows]


@pytest.mark.parametrize("name", ["base", "pascal"])
def test_translate_needs_nothing_else(forked, example_folder, tmp_path, name):
    """The same bytes as from the run directory, whatever the processes and windows.

    Other windows give the same translations, and scores within rounding, since CTranslate2's
    products round by the number of rows (decision 24).
    """
    run, ct2, test = example_folder / "runs" / name, tmp_path / "ct2", example_folder / "test.jsonl"
    assert forked("export", "-m", run, "-o", ct2).returncode == 0
    found = []
    for spread in [], ["-j", 2, "--window", 7]:
        wanted = forked("translate", "--engine", "ctranslate2", "-m", run, *spread, *SEARCH, test)
        assert wanted.returncode == 0
        assert wanted.stdout.count(b"\n") == 16
        assert forked("translate", "-m", ct2, *spread, *SEARCH, test).stdout == wanted.stdout
        found.append(scored(wanted.stdout))
    (translations, scores), (spread_translations, spread_scores) = found
    assert spread_translations == translations
    assert spread_scores == pytest.approx(scores, rel=0, abs=1.5e-4)


def test_it_parses_text_as_the_run_does(forked, example_folder, tmp_path):
    parser = ("--parser", example_folder / "en.udpipe")
    train = ("--train", example_folder / "train.jsonl", "--run", tmp_path / "r", "--preset", "tiny")
    options = ("--variant", "pascal", "--max-steps", 1, "-q")
    assert forked("train", *train, *parser, *options).returncode == 0
    assert forked("export", "-m", tmp_path / "r", "-o", tmp_path / "ct2").returncode == 0
    (tmp_path / "r").rename(tmp_path / "gone")
    text = b"\n".join((example_folder / "test.en").read_bytes().splitlines()[:3]) + b"\n"
    done = forked("translate", "-m", tmp_path / "ct2", *SEARCH, stdin=text)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 3), done.stderr


def test_only_translate_reads_it(forked, example_folder, tmp_path):
    ct2, test = tmp_path / "ct2", example_folder / "test.jsonl"
    assert forked("export", "-m", example_folder / "runs/pascal", "-o", ct2).returncode == 0
    done = forked("translate", "--engine", "torch", "-m", ct2, test)
    assert (done.returncode, b"torch needs the run directory" in done.stderr) == (78, True)
    done = forked("translate", "-m", ct2, test)
    assert (done.returncode, b"cannot do exact search" in done.stderr) == (2, True)
    done = forked("export", "-m", ct2, "-o", tmp_path / "again")
    assert done.returncode == 66
    assert b"only translate reads it" in done.stderr
    train = ["--train", example_folder / "train.jsonl", "--preset", "tiny", "--max-steps", 1]
    done = forked("train", *train, "--run", ct2)
    assert (done.returncode, b"name another --run" in done.stderr) == (73, True)
    done = forked("translate", "--beam", 1, "--checkpoint", "step-9", "-m", ct2, test)
    assert (done.returncode, done.stdout) == (66, b"")
    assert b"it has no checkpoint step-9, only best" in done.stderr
    assert forked("check", ct2).returncode == 0
    for name in ("model.bin", "encoder.safetensors"):
        whole = (ct2 / name).read_bytes()
        (ct2 / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        done = forked("translate", "--beam", 1, "-m", ct2, test)
        assert (done.returncode, done.stdout) == (65, b"")
        assert f"{name}: damaged".encode() in done.stderr
        assert f"{name}: damaged".encode() in forked("check", ct2).stdout
        (ct2 / name).write_bytes(whole)


def test_the_last_checkpoint_is_known_by_its_step(forked, example_folder, tmp_path):
    run, ct2, test = example_folder / "runs/base", tmp_path / "ct2", example_folder / "test.jsonl"
    assert forked("export", "-m", run, "--checkpoint", "last", "-o", ct2).returncode == 0
    steps = [int(path.name.partition("-")[2]) for path in (run / "checkpoints").iterdir()]
    search = ("--checkpoint", f"step-{max(steps)}", *SEARCH)
    assert forked("translate", "-m", ct2, *search, test).stdout.count(b"\n") == 16


def test_a_folder_that_is_there_is_left_alone(forked, example_folder, tmp_path):
    (tmp_path / "mine").write_text("x")
    done = forked("export", "-m", example_folder / "runs/base", "-o", tmp_path)
    assert done.returncode == 73
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_quantized_weights_are_smaller(forked, example_folder, tmp_path):
    for name, options in {"plain": [], "int8": ["--quantization", "int8"]}.items():
        done = forked("export", "-m", example_folder / "runs/base", "-o", tmp_path / name, *options)
        assert done.returncode == 0
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("int8", "plain")]
    assert sizes[0] < 0.6 * sizes[1]


# translate --engine

GREEDY = ["--beam", 1, "--max-output-len", 9]


@pytest.mark.parametrize(
    ("runs", "options", "status", "reason"),
    [
        (["base", "pascal"], GREEDY, 2, "translates with one model, not an ensemble of 2"),
        (["trees"], GREEDY, 78, "a decoder that writes trees, which CTranslate2 lacks"),
        (["base"], ["--beam", 2], 2, "cannot do exact search: --patience 1"),
        (["base"], [*GREEDY, "--precision", "fp16"], 2, "--precision fp16 on this cpu, only fp32"),
    ],
)
def test_what_ctranslate2_cannot_do_has_its_reason(
    forked, example_folder, runs, options, status, reason
):
    models = [part for run in runs for part in ("-m", example_folder / "runs" / run)]
    test = example_folder / "test.jsonl"
    done = forked("translate", "--engine", "ctranslate2", *models, *options, test)
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.count(b"\n") == 1
    assert reason.encode() in done.stderr


def test_auto_says_which_engine_it_is(forked, example_folder):
    run, lines = example_folder / "runs/pascal", example_folder / "test.jsonl"
    for options, told in {
        ("--beam", 1): b"engine ctranslate2\n",
        ("--beam", 2): b"engine torch: CTranslate2 cannot do exact search",
    }.items():
        more = ("--engine", "auto", "-v", "--max-output-len", 9, "-m", run, *options, lines)
        done = forked("translate", *more)
        assert (done.returncode, done.stdout.count(b"\n")) == (0, 16)
        assert told in done.stderr


def test_torch_has_two_precisions(forked, example_folder):
    done = forked(
        "translate", "--precision", "bf16", "-m", example_folder / "runs/base", "/dev/null"
    )
    assert done.returncode == 2
    assert b"--precision bf16 is for a GPU" in done.stderr


def test_one_line_is_one_line(forked, example_folder):
    """Both engines agree on empty lines, a long line in parts, and lines at the limit."""
    lines = b"A dog sleeps .\n\n" + b"dog " * 30 + b"\n \nTom sleeps .\n"
    common = ["-m", example_folder / "runs/base", *GREEDY, "--max-pieces", 20, "--format", "jsonl"]
    ours, theirs = (
        forked("translate", "--engine", engine, *common, stdin=lines)
        for engine in ("torch", "ctranslate2")
    )
    assert ours.stderr == theirs.stderr
    assert b"in parts" in ours.stderr
    assert [line.split(b'"score"')[0] for line in theirs.stdout.splitlines()] == [
        line.split(b'"score"')[0] for line in ours.stdout.splitlines()
    ]
