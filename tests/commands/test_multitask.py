"""`synmt multitask` as a user runs it."""

import json

import pytest

N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train.{en,de,en.conllu}, spm.model with symbols, plain.model, train.jsonl."""
    from support.program import synmt

    folder = tmp_path_factory.mktemp("multitask")
    for arguments in (
        ("synth", "-n", N, "--seed", 1, "--out-template", "train.{ext}"),
        ("featurize", "train.en.conllu", "-o", "words.jsonl"),
        ("multitask", "--format", "symbols", "words.jsonl", "-o", "symbols.txt"),
        ("vocab", "train", "--symbols", "symbols.txt", "--size", 200, "train.en", "train.de",
         "-o", "spm.model"),
        ("vocab", "train", "--size", 180, "train.en", "train.de", "-o", "plain.model"),
        ("featurize", "--spm", "spm.model", "--tgt", "train.de", "train.en.conllu", "-o",
         "train.jsonl"),
    ):  # fmt: skip
        done = synmt(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def records(done):
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]


def test_the_vocabulary_knows_the_symbols_that_the_records_need(run, folder):
    symbols = (folder / "symbols.txt").read_text().split("\n")[:-1]
    assert symbols[:3] == ["<TR>", "<PA>", "<)>"]
    assert {"<(root>", "<(nsubj>"} < set(symbols)
    info = json.loads(run("vocab", "info", "--format", "json", "spm.model", cwd=folder).stdout)
    assert info["symbols"] == symbols
    lines = run("vocab", "info", "spm.model", cwd=folder).stdout.decode()
    assert f"symbols\t{' '.join(symbols)}\n" in lines


def test_every_record_is_translated_and_parsed(run, folder):
    found = records(run("multitask", "--spm", "spm.model", "train.jsonl", cwd=folder))
    assert [r["id"] for r in found[:3]] == ["1:TR", "1:PA", "2:TR"]
    assert len(found) == 2 * N
    for translation, parse in zip(found[::2], found[1::2], strict=True):
        assert translation["pieces"][1:-1] == parse["pieces"][1:-1]
        assert parse["tgt"].count("(") == len(parse["words"]) == parse["tgt"].count(")")
        assert parse["tgt_pieces"].count("<)>") == len(parse["words"])


def test_test_sets_have_one_record_for_each(run, folder):
    text = "A dog sleeps.\n\n<TR> (nsubj <(nsubj> <)>\n"
    (folder / "odd.en").write_text(text)
    parsed = b"".join(
        f"# sent_id = {i}\n# text = {line}\n1\t{line}\t_\tX\t_\t_\t0\troot\t_\t_\n\n".encode()
        for i, line in enumerate(text.split("\n")[:-1], 1)
        if line
    )
    made = run("featurize", "--spm", "spm.model", stdin=parsed, cwd=folder)
    found = records(
        run("multitask", "--spm", "spm.model", "--task", "translate", stdin=made.stdout, cwd=folder)
    )
    assert [r["id"] for r in found] == ["1:TR", "3:TR"]
    symbols = set((folder / "symbols.txt").read_text().split())
    assert not symbols & set(found[1]["pieces"][1:-1])
    ids = run("vocab", "encode", "--ids", "-m", "spm.model", "odd.en", cwd=folder).stdout
    assert min(int(id) for id in ids.split() if id != b"0") > 3 + len(symbols)


def test_mixed_encoder_keeps_the_plain_records_as_they_are(run, folder):
    done = run("multitask", "--spm", "spm.model", "--scheme", "mixed-encoder", "train.jsonl",
               cwd=folder)  # fmt: skip
    plain = b"".join(done.stdout.splitlines(keepends=True)[::2])
    assert plain == (folder / "train.jsonl").read_bytes()
    for one, parsed in zip(*[iter(records(done))] * 2, strict=True):
        assert parsed["tgt_pieces"] == one["tgt_pieces"]
        kept = [p for p in parsed["pieces"] if not p.startswith("<(") and p != "<)>"]
        assert sorted(kept) == sorted(one["pieces"])


def penn(record):
    """A flat constituency tree over a record's words."""
    words = " ".join(f"(X {word})" for word in record["words"])
    return f"(ROOT (S {words}))\n"


def test_penn_brackets_stand_for_the_dependencies(run, folder):
    plain = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    (folder / "train.penn").write_text("".join(map(penn, plain)))
    symbols = run("multitask", "--format", "symbols", "--penn", "train.penn", cwd=folder).stdout
    assert symbols == b"<TR>\n<PA>\n<)>\n<(ROOT>\n<(S>\n"
    trees = (folder / "train.penn").read_bytes()
    assert run("multitask", "--format=symbols", "--penn", "-", stdin=trees).stdout == symbols
    run("vocab", "train", "--symbols", "-", "--size", 180, "train.en", "train.de", "-o",
        "penn.model", stdin=symbols, cwd=folder)  # fmt: skip
    made = run("featurize", "--spm", "penn.model", "--tgt", "train.de", "train.en.conllu",
               cwd=folder).stdout  # fmt: skip
    found = records(run("multitask", "--spm", "penn.model", "--penn", "train.penn", stdin=made,
                        cwd=folder))  # fmt: skip
    assert {r["tgt"] for r in found[1::2]} == {"(ROOT (S ) )"}
    mixed = records(run("multitask", "--spm", "penn.model", "--penn", "train.penn", "--scheme",
                        "mixed-encoder", stdin=made, cwd=folder))  # fmt: skip
    for one, parsed in zip(mixed[::2], mixed[1::2], strict=True):
        assert parsed["pieces"] == ["<(ROOT>", "<(S>", *one["pieces"], "<)>", "<)>"]


@pytest.mark.long
def test_one_model_learns_to_translate_and_to_parse(run, folder):
    found = records(run("multitask", "--spm", "spm.model", "train.jsonl", cwd=folder))
    pairs = zip(found[::2], found[1::2], strict=True)
    few = [record for pair in pairs if len(pair[0]["words"]) < 10 for record in pair][:16]
    (folder / "few.jsonl").write_text("".join(json.dumps(record) + "\n" for record in few))
    settings = (
        *("model.dropout=0", "model.d_model=64", "model.d_ff=128", "training.label_smoothing=0"),
        *("training.lr=0.003", "training.warmup=20", "training.batch_tokens=1000"),
    )
    options = ("--threads", 1, *(f"--set={one}" for one in settings))
    done = run("train", "--preset", "tiny", "--train", "few.jsonl", "--max-steps", 180,
               "--run", "run", *options, cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = run("translate", "-m", "run", "--beam", 1, "--checkpoint", "last", "few.jsonl",
               "--threads", 1, cwd=folder)  # fmt: skip
    assert done.stdout.decode().split("\n")[:-1] == [record["tgt"] for record in few]


def test_bleu_on_dev_is_of_translations(run, folder):
    done = run("multitask", "--spm", "spm.model", "train.jsonl", cwd=folder)
    (folder / "both.jsonl").write_bytes(done.stdout)
    train = ("train", "--preset", "tiny", "--variant", "multitask", "--train", "both.jsonl")
    done = run(*train, "--dev", "both.jsonl", "--run", "bleu", cwd=folder)
    assert done.returncode == 78
    assert done.stderr == (
        b"synmt train: both.jsonl:2: asks for a parse, but training.metric, bleu, is of "
        b"translations; synmt multitask --task translate makes records for dev\n"
    )
    loss = ("--set", "training.metric=loss", "--dry-run", "--threads", 1)
    assert run(*train, "--dev", "both.jsonl", *loss, cwd=folder).returncode == 0


def test_what_has_no_parse_is_counted_and_strict_stops_there(run, folder):
    first = (folder / "train.jsonl").read_bytes().split(b"\n")[0] + b"\n"
    stream = first + b'{"src":"a","status":"failed","reason":"why","pieces":["a"]}\n' + first
    done = run("multitask", "--spm", "spm.model", stdin=stream, cwd=folder)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 5)
    assert done.stderr.decode().splitlines() == [
        "synmt multitask: warning: 1 of 3 records have no parse",
        "synmt multitask: warning: the first of them: <stdin>:2: failed: why",
    ]
    done = run("multitask", "--strict", "--spm", "spm.model", stdin=stream, cwd=folder)
    assert (done.returncode, done.stdout.count(b"\n")) == (65, 2)
    assert done.stderr == b"synmt multitask: <stdin>:2: failed: why\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["train.jsonl"], 2, "--spm MODEL is missing"),
        (["--tgt-spm", "spm.model"], 2, "--spm MODEL is missing"),
        (["--spm", "spm.model", "--penn", "-"], 2, "only one input can be stdin"),
        (
            ["--format", "symbols", "--penn", "p", "train.jsonl"],
            2,
            "--format symbols reads records or --penn",
        ),
        (
            ["--format", "symbols", "--brackets", "text", "train.jsonl"],
            2,
            "--brackets text needs no symbols for labels, only the two tags",
        ),
        (
            ["--format", "symbols", "--spm", "spm.model", "train.jsonl"],
            2,
            "--format symbols lists symbols: it takes no --spm, --tgt-spm, --strict",
        ),
        (["--spm", "none.model", "train.jsonl"], 69, "cannot read the vocabulary none.model"),
        (["--spm", "plain.model", "train.jsonl"], 78, "plain.model has no symbol '<TR>'; synmt"),
        (["--spm", "spm.model"], 65, "<stdin>:1: invalid JSON"),
        (["--spm", "spm.model", "words.jsonl"], 65, "words.jsonl:1: no pieces; make records with"),
        (["--spm", "spm.model", "train.jsonl", "--penn", "-"], 65, "<stdin>:1: 1 bracket not"),
        (["--spm", "spm.model", "train.jsonl", "--penn", "symbols.txt"], 65, "symbols.txt:1: '<"),
    ],
)
def test_mistakes_are_said_in_one_line(run, folder, arguments, status, message):
    done = run("multitask", *arguments, stdin=b"(S\n", cwd=folder)
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.decode().startswith(f"synmt multitask: {message}")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("symbols", "status", "message"),
    [
        (b"<a>\n\n", 65, "<stdin>:2: '' is not a symbol: it is empty"),
        (b"<a>\n)\n", 65, "<stdin>:2: ')' is not a symbol: it is a single character"),
        (b"a b\n", 65, "<stdin>:1: 'a b' is not a symbol: it has a space"),
        (b"\xff\n", 65, "<stdin>:1: invalid UTF-8 at byte 1"),
        (b"</s>\n", 2, "'</s>' cannot be a symbol: it is a piece already"),
        (b"".join(b"<s%d>\n" % i for i in range(99)), 2, "size 100 is too small"),
    ],
)
def test_what_is_no_symbol_is_refused(run, folder, symbols, status, message):
    done = run("vocab", "train", "--size", 100, "--symbols", "-", "train.en", stdin=symbols,
               cwd=folder)  # fmt: skip
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.decode().startswith(f"synmt vocab train: {message}")
    assert done.stderr.count(b"\n") == 1


def test_stdin_is_one_thing(run, folder):
    done = run("vocab", "train", "--symbols", "-", cwd=folder)
    assert done.returncode == 2
    assert b"only one input can be stdin" in done.stderr
