import hashlib
import json
import os
import unicodedata

import pytest
from support.sentencepiece_models import OUR_IDS, sentencepiece_model

from synmt_cli.core.text.vocabulary import Vocabulary

LINES = b"the dog sees the cat .\n\n  a cat sees  <s> dogs . \nna\xc3\xafve \xf0\x9f\x98\x80\n" * 3
TEXT = LINES.decode().split("\n")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from support.program import synmt

    path = tmp_path_factory.mktemp("vocab") / "m.model"
    done = synmt("vocab", "train", "--size", 30, "-o", path, stdin=LINES)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(b"synmt vocab train: 30 pieces, fingerprint ")
    return path


def test_a_model_is_not_compressed(run, tmp_path):
    for command in (("vocab", "train"), ("parser", "train")):
        done = run(*command, "absent", "-o", "m.gz", cwd=tmp_path)
        assert done.returncode == 2
        assert b"-o m.gz: a model is not compressed" in done.stderr
    assert not list(tmp_path.iterdir())


def test_text_comes_back_line_by_line(run, model):
    encoded = run("vocab", "encode", "-m", model, stdin=LINES)
    assert encoded.stdout.count(b"\n") == LINES.count(b"\n")
    decoded = run("vocab", "decode", "-m", model, stdin=encoded.stdout).stdout
    assert decoded == b"\n".join(b" ".join(line.split()) for line in LINES.split(b"\n"))


def test_ids_come_back_but_for_unknown_characters(run, model):
    ids = run(
        "vocab", "encode", "--ids", "-m", model, stdin=b"the dog\n\nthe \xe4\xb8\xad\n"
    ).stdout
    assert b"0" in ids.split(b"\n")[2].split(b" ")
    text = run("vocab", "decode", "--ids", "-m", model, stdin=ids).stdout.decode()
    assert text.split("\n")[:2] == ["the dog", ""]
    assert "⁇" in text


def test_without_a_size_the_text_decides(run, tmp_path):
    """500 below 1,000 lines, else 1,000; less if the text has less, more if it needs more."""
    lines = [" ".join(str(n * prime) for prime in (7919, 6133, 8669)) + "\n" for n in range(600)]
    sizes = []
    for text in (lines, lines * 2, lines[:4], [f"{chr(0x4E00 + n)}\n" for n in range(900)]):
        model = run("vocab", "train", stdin="".join(text).encode()).stdout
        (tmp_path / "model").write_bytes(model)
        sizes.append(Vocabulary.load(str(tmp_path / "model")).size)
    assert sizes[:2] == [500, 1000]
    assert 4 < sizes[2] < 500
    assert sizes[3] > 900


@pytest.mark.parametrize(("coverage", "known"), [(1.0, True), (0.98, False)])
def test_the_rarest_characters_may_go_without_a_piece(run, tmp_path, coverage, known):
    text = "a tab\n" * 99 + "ü\n"
    train = ("vocab", "train", "--character-coverage", coverage, "-o", tmp_path / "m")
    assert run(*train, stdin=text.encode()).returncode == 0
    encoded = run("vocab", "encode", "--ids", "-m", tmp_path / "m", stdin="a tab\nü\n".encode())
    common, rare = encoded.stdout.splitlines()
    assert [b"0" in line.split() for line in (common, rare)] == [False, not known]


@pytest.mark.parametrize("rule", ["identity", "nfkc", "nfkc_cf"])
def test_text_is_normalized_by_the_rule_asked_for(run, tmp_path, rule):
    text = "Ｔom ﬁnds ① fish"
    train = ("vocab", "train", "--normalization", rule, "-o", tmp_path / "m")
    assert run(*train, stdin=text.encode()).returncode == 0
    pieces = run("vocab", "encode", "-m", tmp_path / "m", stdin=text.encode()).stdout
    found = run("vocab", "decode", "-m", tmp_path / "m", stdin=pieces).stdout.decode().strip()
    normal = text if rule == "identity" else unicodedata.normalize("NFKC", text)
    assert found == (normal.casefold() if rule == "nfkc_cf" else normal)


def test_a_line_with_the_sign_for_unknown_characters_is_learned_from(run, tmp_path):
    """sentencepiece leaves out lines with U+2585."""
    text = "▅common words\n" * 50 + "ab\n"
    done = run("vocab", "train", "--size", 30, "-o", tmp_path / "m", stdin=text.encode())
    assert done.returncode == 0
    encoded = run("vocab", "encode", "-m", tmp_path / "m", stdin=b"common\n").stdout
    assert "▁common" in encoded.decode().split()


def test_a_carriage_return_that_ends_a_line_stays(run, model):
    """The reader of a line drops one CR before its LF."""
    pieces = run("vocab", "encode", "-m", model, stdin=b"a\r\r\nb\r\n").stdout
    assert pieces.endswith(b"\r\r\n" + run("vocab", "encode", "-m", model, stdin=b"b\n").stdout)
    assert run("vocab", "decode", "-m", model, stdin=pieces).stdout.endswith(b"\r\r\nb\n")


@pytest.mark.parametrize("word", ["30", "1_0", "9" * 5000])
def test_what_is_no_id_is_named(run, model, word):
    done = run("vocab", "decode", "--ids", "-m", model, stdin=f"5\n6 {word}\n".encode())
    assert (done.returncode, done.stdout.count(b"\n")) == (65, 1)
    assert b"<stdin>:2: '" in done.stderr
    assert len(done.stderr) < 200


def test_info_says_what_the_file_is(run, model):
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    found = json.loads(run("vocab", "info", "--format", "json", model).stdout)
    assert found["fingerprint"] == digest[:16]
    assert [found[name] for name in ("unk", "pad", "bos", "eos")] == [0, 1, 2, 3]
    assert (found["size"], found["type"], found["normalization"]) == (30, "bpe", "identity")
    lines = run("vocab", "info", model).stdout.decode().splitlines()
    assert f"fingerprint\t{digest[:16]}" in lines


def test_several_files_are_one_text(run, model, tmp_path):
    (tmp_path / "a").write_bytes(LINES[:40])
    (tmp_path / "b").write_bytes(LINES[40:])
    whole = run("vocab", "train", "--size", 28, stdin=LINES[:40] + b"\n" + LINES[40:]).stdout
    parts = run("vocab", "train", "--size", 28, tmp_path / "a", tmp_path / "b").stdout
    assert whole == parts != b""


@pytest.mark.parametrize(
    ("arguments", "text", "status", "message"),
    [
        (["--size", "9000"], LINES, 2, "size 9000 is too large for this text: at most"),
        (["--character-coverage=0.97"], LINES, 2, "greater than or equal to 0.98"),
        (["--size", "5"], LINES, 2, "size 5 is too small: single characters alone need"),
        (["--size", "7"], b"a b c\n", 2, "alone need 8 (or a lower character coverage)\n"),
        (
            ["--byte-fallback", "--size", "260"],  # no coverage leaves room for a character
            b"a b c\n",
            2,
            "size 260 is too small: 256 bytes and single characters need 264\n",
        ),
        (
            ["--byte-fallback", "--size", "261"],
            b"a b c\n",
            2,
            "256 bytes and single characters need 264 (or a lower character coverage)\n",
        ),
        (["--size", f"{2**31}"], LINES, 2, "--size is auto, or a number of 5 to 999999999"),
        (["--size", "9" * 5000], LINES, 2, "--size is auto, or a number of 5 to 999999999"),
        (["--type", "word", "--byte-fallback", "--size", "99"], LINES, 2, "size 99 is too small"),
        (["--user-symbols", "<s>"], LINES, 2, "'<s>' cannot be a user symbol"),
        (["--user-symbols", os.fsdecode(b"x\xff")], LINES, 2, "cannot be a user symbol"),
        ([], b"", 65, "<stdin>: no text to learn from"),
        (["-"], b"\n \n", 65, "<stdin>: no text to learn from"),
        (["--type=word"], b"a " + b"x" * 9000 + b"\n", 65, "a word is too long to be a piece: cut"),
        ([], b"a\n\xff\n", 65, "<stdin>:2: invalid UTF-8 at byte 1"),
        (["-o", "no/where", "none.txt"], LINES, 73, "cannot create no/where"),
    ],
)
def test_what_cannot_be_learned_is_said_in_one_line(
    run, tmp_path, arguments, text, status, message
):
    done = run("vocab", "train", *arguments, stdin=text, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "name"), [(["encode", "-m"], "bad"), (["decode", "-m"], "none"), (["info"], ".")]
)
def test_what_is_no_model_is_named(run, tmp_path, command, name):
    (tmp_path / "bad").write_bytes(b"not a model")
    done = run("vocab", *command, name, cwd=tmp_path)
    assert done.returncode == 69
    assert name in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1


def test_drawn_pieces_depend_on_seed_and_line_alone(run, model, tmp_path):
    text = LINES * 100
    cut = text.index(b"\n", 700) + 1
    (tmp_path / "a").write_bytes(text[:cut])
    (tmp_path / "b").write_bytes(text[cut:])
    sample = ["vocab", "encode", "-m", model, "--sample", 0.3]
    drawn = run(*sample, "-j", 2, stdin=text).stdout
    assert drawn == run(*sample, tmp_path / "a", tmp_path / "b").stdout
    assert drawn != run(*sample, "--seed", 2, stdin=text).stdout
    assert len(set(drawn.split(b"\n")[::4])) > 50  # the same line, drawn again and again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sample", "1.5"], "--sample is a chance, at most 1, for "),
        (["--sample", "0.5", "--nbest", "4"], "--nbest is for unigram models; "),
        (["--nbest", "4"], "--nbest is for --sample"),
        (["--seed", "4"], "--seed is for --sample"),
        (["--sample", "inf"], "Invalid value for '--sample': Input should be less than or equal"),
        (["--sample", "1e308"], "Invalid value for '--sample': Input should be less than or eq"),
    ],
)
def test_what_cannot_be_drawn_is_said(run, model, arguments, message):
    done = run("vocab", "encode", "-m", model, *arguments, stdin=LINES)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"synmt vocab encode: {message}")


def test_a_model_of_another_program_is_converted(run, tmp_path):
    import sentencepiece

    (tmp_path / "text").write_bytes(LINES)
    (tmp_path / "other.model").write_bytes(sentencepiece_model(TEXT, 26))
    refused = run("vocab", "encode", "-m", "other.model", stdin=LINES, cwd=tmp_path)
    assert refused.returncode == 78
    assert b"other.model has unk 0, pad -1, bos 1, eos 2; needed are unk 0" in refused.stderr
    done = run("vocab", "convert", "other.model", "-o", "ours.model", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    other = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "other.model"))
    n = other.vocab_size() + 1  # it has no piece for padding
    assert f"convert: converted: {n} pieces, fingerprint ".encode() in done.stderr
    encoded = run("vocab", "encode", "-m", "ours.model", stdin=LINES, cwd=tmp_path).stdout
    assert encoded.decode().split("\n") == [
        " ".join(other.encode(line, out_type=str)) for line in LINES.decode().split("\n")
    ]
    again = run("vocab", "convert", "ours.model", cwd=tmp_path)
    assert again.stdout == (tmp_path / "ours.model").read_bytes()
    assert f"convert: unchanged, since its ids are right: {n} ".encode() in again.stderr
    assert run("check", "ours.model", cwd=tmp_path).returncode == 0
    assert b"kind\tsentencepiece\n" in run("info", "ours.model", cwd=tmp_path).stdout
    for name in ("absent", "text"):
        assert run("vocab", "convert", name, cwd=tmp_path).returncode == 69


def test_no_command_takes_pieces_that_end_with_spaces(run, tmp_path):
    model = sentencepiece_model(TEXT, 26, treat_whitespace_as_suffix=True, **OUR_IDS)
    (tmp_path / "other.model").write_bytes(model)
    problem = b"other.model was trained with --treat_whitespace_as_suffix; train it without that\n"
    for command in ("encode -m", "decode -m", "convert", "info"):
        done = run("vocab", *command.split(), "other.model", stdin=LINES, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (78, b"")
        assert done.stderr == f"synmt vocab {command.split()[0]}: ".encode() + problem
    done = run("check", "other.model", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, problem)


def test_check_names_convert_where_the_first_piece_is_an_ordinary_one(run, tmp_path):
    (tmp_path / "other.model").write_bytes(
        sentencepiece_model(TEXT, 26, unk_id=2, bos_id=-1, eos_id=-1)
    )
    done = run("check", "other.model", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith(b"other.model has unk 2, pad -1, bos -1, eos -1; needed are ")
    assert done.stdout.endswith(b": see synmt vocab convert\n")
