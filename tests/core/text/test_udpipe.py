import contextlib
import io
import os
import random
import signal
import struct
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synmt_cli.core.text import udpipe
from synmt_cli.core.text.vocabulary import MODEL_LIMIT, Vocabulary
from synmt_cli.errors import Unavailable
from synmt_cli.formats import conllu, udpipe_model
from synmt_cli.io.reading import Source

# Without NUL and LF, which no line that comes here has
lines_of_text = st.text(st.characters(exclude_characters="\0\n", codec="utf-8"), max_size=40)


@pytest.fixture(scope="module")
def parser(tiny_udpipe):
    return udpipe.Parser(str(tiny_udpipe))


def read(parsed):
    """The sentences that our own reader of CoNLL-U finds; it checks ids, heads and trees."""
    file = io.BufferedReader(io.BytesIO(conllu.encoded(parsed.conllu)))
    return list(conllu.read(Source("x", file)))


def spans(sentence):
    """The characters that each token's TokenRange names."""
    for row in sentence.rows:
        found = dict(item.split("=", 1) for item in row[9].split("|") if "=" in item)
        if "TokenRange" in found:
            begin, end = map(int, found["TokenRange"].split(":"))
            yield row[1], sentence.comment("text")[begin:end]


def test_a_line_becomes_its_tree(parser):
    (sentence,) = read(parser.line("The dog sees the cat.", "7"))
    assert sentence.comments == ["# sent_id = 7", "# text = The dog sees the cat."]
    assert sentence.forms == ["The", "dog", "sees", "the", "cat", "."]
    assert sentence.heads == [2, 3, 0, 5, 3, 3]
    assert sentence.upos[:3] == ["DET", "NOUN", "VERB"]


def test_rows_that_the_library_does_not_take_are_parsed_as_they_are(parser):
    rows = (
        "1-2\tThedog\tthedog\tNO UN\t_\t_\t_\t_\t_\tx\r\n"
        "1\tTh\re\t_\tNO UN\t_\t_\t2\tdet\t_\tx=\r\n"
        "2\tdog\t_\t_\t_\t_\t0\troot\t_\t_\n"
        "2.1\tq\tq\tq\tq\tq\t3\tq\tq\tq\n\n"
    )
    (before,) = read(udpipe.Parsed(rows))
    (after,) = read(parser.again(before))
    assert [row for row in after.rows if not row[0].isdecimal()] == before.rows[::3]
    kept = [(row[1], row[8:]) for row in before.words]
    assert [(row[1], row[8:]) for row in after.words] == kept
    assert after.upos[1] == "NOUN"


@pytest.mark.parametrize(
    "text",
    [
        "😀 The dog sees 𝒳.",
        "  The  dog\tsees the cat .  ",
        "The\u00a0dog sees\u3000the cat.",
        "The de\u0301g sees the cat.",
        "The dog\u2028sees the\u2029cat.",
        "The dog\rsees\x85the\x0bcat\x0c.\x1c\x1d\x1e\x1f",
        "# The dog sees the cat.",
        "# sent_id = 12",
        "The TokenRange=7:9 dog",
        "\ufeffThe dog",
        "The dog\r",
    ],
)
def test_offsets_count_characters_of_the_line_as_it_is(parser, text):
    (sentence,) = read(parser.line(text, "1"))
    assert sentence.comment("text") == text
    pairs = list(spans(sentence))
    assert pairs
    assert all(form == text for form, text in pairs)


@pytest.mark.parametrize("text", ["", " ", "\t \u3000", "\u2028\r\x0b", "\u00a0"])
@pytest.mark.parametrize("method", ["line", "sentences", "tokens"])
def test_a_blank_line_is_an_empty_record(parser, text, method):
    parsed = getattr(parser, method)(text, "3")
    (sentence,) = read(parsed)
    assert parsed.status == "empty"
    assert sentence.metadata() == {"sent_id": "3", "text": text, "synmt_status": "empty"}
    assert sentence.rows == [["1", "_", "_", "X", "_", "_", "0", "root", "_", "_"]]


def test_sentences_of_a_line_are_joined_by_their_comments(parser):
    text = "  The dog sleeps.  A cat sees the cat.   The man is. "
    sentences = read(parser.sentences(text, "5"))
    assert [sentence.comment("sent_id") for sentence in sentences] == ["5.1", "5.2", "5.3"]
    assert {sentence.comment("synmt_line") for sentence in sentences} == {"5"}
    assert "".join(sentence.comment("text") for sentence in sentences) == text
    for sentence in sentences:
        begin, end = sentence.words[0][9].split("TokenRange=")[1].split(":")
        assert text[int(begin) : int(end)] == sentence.forms[0]


@pytest.mark.parametrize("method", ["line", "tokens"])
def test_a_line_of_several_sentences_is_one_tree(parser, method):
    assert len(read(getattr(parser, method)("The dog sleeps . A cat sleeps .", "1"))) == 1


def test_tokens_are_kept_as_they_are(parser):
    text = " The  dog. _ don't\t# \u2028 x\u00a0y "
    (sentence,) = read(parser.tokens(text, "1"))
    assert sentence.forms == ["The", "dog.", "_", "don't", "#", "\u2028", "x\u00a0y"]
    assert all(form == text for form, text in spans(sentence))


def test_parsing_again_keeps_all_but_tags_and_trees(parser):
    block = (
        "# global = é\n# sent_id = a-1\n"
        "1-2\tThedog\t_\t_\t_\t_\t_\t_\t_\tTokenRange=0:6\n"
        "1\tThe\tx\tX\tx\tX=x\t0\troot\t_\tA=1|SpaceAfter=No\n"
        "2\tbig dog\tx\tX\tx\tX=x\t1\tx\t1:x\tB\n"
        "2.1\tgone\t_\t_\t_\t_\t_\t_\t1:x\t_\n"
        "3\tsleeps\tx\tX\tx\tX=x\t1\tx\t_\t_\n\n"
    )
    (before,) = read(udpipe.Parsed(block))
    (after,) = read(parser.again(before))
    assert after.comments == before.comments
    assert [row[:2] + row[9:] for row in after.rows] == [row[:2] + row[9:] for row in before.rows]
    assert (after.upos, after.heads) == (["DET", "NOUN", "VERB"], [2, 3, 0])


@pytest.mark.parametrize("text", ["", "x" * (udpipe.MAX_CHARACTERS + 1)])
def test_parsing_again_leaves_a_record_without_a_tree_alone(parser, text):
    parsed = parser.line(text, "1")
    (sentence,) = read(parsed)
    assert parser.again(sentence) == parsed


@pytest.mark.parametrize("text", ["The dog sees the cat. " * 1400, "x" * 20_000, "x 1 . " * 2_700])
def test_a_long_line_is_one_tree_in_reasonable_time(parser, text):
    (sentence,) = read(parser.line(text, "1"))
    assert "".join(sentence.forms) == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" * 1_000_001, "1,000,001 characters, at most 1,000,000"),
        ("x " * 50_001, "50,001 words in a sentence, at most 50,000"),
    ],
)
def test_a_line_over_the_limits_is_a_failed_record(parser, text, reason):
    parsed = parser.line(text, "1")
    (sentence,) = read(parsed)
    assert (parsed.status, parsed.reason) == ("failed", reason)
    assert sentence.comment("synmt_reason") == reason
    assert sentence.comment("text") == text


@settings(max_examples=100)
@example(text="\r", method="line")
@example(text="The\r", method="sentences")
@given(text=lines_of_text, method=st.sampled_from(["line", "sentences", "tokens"]))
def test_any_line_is_one_valid_record(parser, text, method):
    parsed = getattr(parser, method)(text, "1")
    sentences = read(parsed)
    assert "".join(sentence.comment("text") for sentence in sentences) == text
    assert parsed.status == ("empty" if not text or text.isspace() else "ok")
    assert len(sentences) == 1 or method == "sentences"


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_model_is_refused_with_its_name(tiny_udpipe, tmp_path, damage):
    draw, path = random.Random(1), tmp_path / "damaged.udpipe"
    for _ in range(20):
        data = bytearray(tiny_udpipe.read_bytes())
        if damage == "flip":  # in the data of lzma, which notices damage
            data[draw.randrange(len(data) // 2, len(data) - 99)] ^= 1 << draw.randrange(8)
        else:
            del data[draw.randrange(len(data)) :]
        path.write_bytes(data)
        with pytest.raises(Unavailable, match=r"damaged\.udpipe is damaged or no UDPipe 1 model"):
            udpipe.load(str(path))


def packed(name, *blocks, rest=b""):
    """A file marked as a UDPipe model. blocks: (unpacked size, packed bytes, stated length)."""
    data = bytes([len(name)]) + name + b"\x03\x7f\x7f\x01"
    for unpacked, content, n in blocks:
        total = (unpacked * 19991 + n * 199999991 + 1234567890) % 2**32
        data += struct.pack("<III5x", unpacked, n, total) + content
    return data + rest


NAME = b"morphodita_parsito"


@pytest.mark.parametrize(
    "content",
    [
        b"\x80" * 99,  # std::length_error in the library
        b"\xff" + NAME,
        packed(NAME, rest=bytes(99)),
        packed(NAME, (10, b"", 2**32 - 1)),  # std::bad_alloc
        packed(NAME, (2**32 - 1, b"x" * 40, 40), (1, b"x" * 40, 40)),
        packed(NAME, (2**30, b"x" * 40, 40), (2**30, b"x" * 40, 40), (1, b"x" * 40, 40)),
        packed(NAME, (10, b"x" * 40, 40), rest=bytes(40)),
    ],
    ids=range(7),
)
def test_what_the_library_would_end_the_process_at_never_reaches_it(tmp_path, monkeypatch, content):
    monkeypatch.setattr("ufal.udpipe.Model", None)  # it is not asked
    path = tmp_path / "x.udpipe"
    path.write_bytes(content)
    with pytest.raises(Unavailable, match=r"x\.udpipe is damaged or no UDPipe 1 model"):
        udpipe.load(str(path))


def test_random_damage_never_ends_the_process(tiny_udpipe, tmp_path):
    draw, path = random.Random(5), tmp_path / "x.udpipe"
    whole = tiny_udpipe.read_bytes()
    for _ in range(150):
        data = bytearray(whole)
        at = draw.choice([draw.randrange(len(data)), draw.randrange(60)])
        n = draw.choice([1, 4, 64, 4096])
        data[at : at + n] = draw.choice([draw.randbytes(n), b"\xff" * n, b""])
        path.write_bytes(data)
        with contextlib.suppress(Unavailable):
            udpipe.load(str(path))


@pytest.mark.parametrize("fatal", [signal.SIGSEGV, signal.SIGABRT, signal.SIGXCPU])
def test_a_model_that_ends_the_process_is_found_in_another(tiny_udpipe, monkeypatch, fatal):
    """A stand-in plays a model that was packed to do so; this process must not load it."""
    assert udpipe.load(str(tiny_udpipe), tried=True) is not None
    model = SimpleNamespace(load=lambda _: os.kill(os.getpid(), fatal))
    monkeypatch.setattr("ufal.udpipe.Model", model)
    with pytest.raises(Unavailable, match=r"tiny\.udpipe is damaged or no UDPipe 1 model"):
        udpipe.load(str(tiny_udpipe), tried=True)


def test_a_model_without_the_memory_for_it_is_refused(tiny_udpipe, monkeypatch):
    monkeypatch.setattr("ufal.udpipe.Model", None)  # it is not asked
    asked = []
    monkeypatch.setattr(udpipe.memory, "is_available", asked.append)
    with pytest.raises(Unavailable, match=r"cannot load .*: it needs about \d+ MiB of memory"):
        udpipe.load(str(tiny_udpipe))
    assert asked[0] > tiny_udpipe.stat().st_size


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_only_a_regular_file_is_a_model(tmp_path, kind):
    """Others are refused at once: the pipe has no writer, and /dev/zero no end."""
    os.mkfifo(tmp_path / "pipe")
    path = {"device": "/dev/zero", "pipe": str(tmp_path / "pipe"), "folder": str(tmp_path)}[kind]
    with pytest.raises(Unavailable, match="cannot read the model"):
        udpipe.load(path)
    with pytest.raises(Unavailable, match="cannot read the vocabulary"):
        Vocabulary.load(path)


def test_a_vocabulary_of_a_size_that_none_has_is_not_read(tmp_path):
    with open(tmp_path / "v.model", "wb") as file:
        file.truncate(MODEL_LIMIT + 1)
    with pytest.raises(Unavailable, match=r"v\.model: 268,435,457 bytes, at most 268,435,456"):
        Vocabulary.load(str(tmp_path / "v.model"))


@pytest.mark.parametrize("content", [b"", b"hello\n" * 99, bytes(10_000), b"\x1f\x8b" * 99, None])
def test_what_is_no_model_is_refused_with_its_name(tmp_path, content):
    path = tmp_path / "no.udpipe"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Unavailable, match=r"no\.udpipe"):
        udpipe.load(str(path))


def test_a_folder_and_a_name_that_is_not_unicode_are_no_models(tmp_path):
    for path in (str(tmp_path), str(tmp_path / "\udcff"), "a\0b"):
        with pytest.raises(Unavailable, match="cannot read the model"):
            udpipe.load(path)


def rows(parsed):
    return [line.split("\t") for line in parsed.conllu.split("\n") if "\t" in line]


@pytest.mark.parametrize("tagger", ["models=1", "models=2"])
def test_without_lemmas_all_the_rest_is_the_same(trained, tagger):
    path = trained(tagger, "")
    for text in ("The dog sees the cat.", "A woman likes Anna's 2 dogs."):
        both = [udpipe.Parser(path, lemmas=lemmas).line(text, "1") for lemmas in (True, False)]
        full, bare = map(rows, both)
        assert {row[2] for row in bare} == {"_"} != {row[2] for row in full}
        assert [row[:2] + row[3:] for row in bare] == [row[:2] + row[3:] for row in full]
    data = Path(path).read_bytes()
    n_removed = len(data) - len(udpipe_model.without_lemmas(data))
    assert n_removed > 0 if tagger == "models=2" else n_removed == 0


def test_a_parser_that_reads_lemmas_keeps_them(trained):
    path = trained("models=2", "embedding_lemma=5")
    assert udpipe_model.without_lemmas(Path(path).read_bytes()) is None
    full, bare = (
        udpipe.Parser(path, lemmas=lemmas).line("The dog sleeps.", "1") for lemmas in (True, False)
    )
    assert full == bare


def test_damage_where_the_lemmatizer_is_sought_is_no_error_of_ours(tiny_udpipe):
    draw, whole = random.Random(3), tiny_udpipe.read_bytes()
    assert udpipe_model.without_lemmas(whole) is not None
    for _ in range(50):
        data = bytearray(whole)
        at = draw.choice([draw.randrange(len(data)), draw.randrange(60)])
        data[at : at + draw.choice([1, 4, 4096])] = draw.randbytes(draw.randrange(8))
        udpipe_model.without_lemmas(bytes(data))


def test_a_beam_of_one_is_greedy_search(parser, monkeypatch):
    asked = []
    monkeypatch.setattr(parser, "_beam", 1)
    monkeypatch.setattr(
        parser,
        "_model",
        SimpleNamespace(
            newTokenizer=parser._model.newTokenizer,
            tag=parser._model.tag,
            parse=lambda one, options, error, parse=parser._model.parse: (
                asked.append(options),
                parse(one, options, error),
            )[1],
        ),
    )
    assert parser.line("The dog sleeps.", "1").status == "ok"
    assert asked == ["beam_search=1"]


def test_a_forest_is_a_failed_record_and_never_mended(run, tiny_treebank, tmp_path):
    options = [
        "--tokenizer-options=none",
        "--tagger-options=iterations=1",
        "-o",
        tmp_path / "forests.udpipe",
    ]
    many_roots = "--parser-options=single_root=0;iterations=1;hidden_layer=10;structured_interval=0"
    assert run("parser", "train", "-", many_roots, *options, stdin=tiny_treebank).returncode == 0
    parser = udpipe.Parser(str(tmp_path / "forests.udpipe"))
    texts = [" ".join(words) for words in product(("The", "dog", "sleeps", "."), repeat=3)]
    parsed = [parser.tokens(text, "1") for text in texts]
    assert {record.status for record in parsed} == {"ok", "failed"}
    for text, record in zip(texts, parsed, strict=True):
        (sentence,) = read(record)
        assert sentence.comment("text") == text
        assert record.status == "ok" or record.reason.endswith(" roots")
