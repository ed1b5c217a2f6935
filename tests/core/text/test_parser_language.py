import gzip
import io
import itertools
import lzma
import random
import re
import shutil
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.text import parser_language, udpipe
from synmt_cli.formats import conllu, udpipe_model
from synmt_cli.io.reading import Source

MODELS = {"de": "de_mixed", "en": "en_ewt", "fr": "french-partut-ud-2.5-191206"}
TEXTS = {
    "multi30k/train.{}.gz": ("de", "en", "fr"),
    "news/newstest2012.{}.xz": ("de", "en", "fr"),
    "europarl-en-fr/train.{}.xz": ("en", "fr"),
    "books/train.{}.gz": ("de", "en"),
}


@pytest.fixture(scope="module")
def parser(tiny_udpipe):
    return udpipe.Parser(str(tiny_udpipe))


def words_of(path):
    return udpipe_model.parser_words(Path(path).read_bytes())


def of_treebank(treebank):
    source = Source("x", io.BufferedReader(io.BytesIO(treebank)))
    return Counter(form for sentence in conllu.read(source) for form in sentence.forms)


@pytest.mark.parametrize("least", [2, 24, 30])
def test_the_parser_has_the_words_that_occur_often_enough(tiny_treebank, trained, least):
    words = words_of(trained("", f"embedding_form_mincount={least}"))
    often = {form for form, n in of_treebank(tiny_treebank).items() if n >= least}
    assert words == often
    assert len(often) > 2


def test_a_parser_that_reads_other_columns_first_has_the_same_words(trained):
    other = trained("", "embedding_lemma=5;embedding_upostag=3;embedding_feats=9")
    assert words_of(trained("", "")) == words_of(other) != set()


def test_nothing_is_said_of_a_parser_that_reads_no_words(trained):
    path = trained("", "embedding_form=0")
    assert words_of(path) is None
    assert parser_language.familiarity(path, ["unheard"] * 999) is None


def test_words_of_a_damaged_model_are_none_or_some(tiny_udpipe):
    draw, whole = random.Random(7), tiny_udpipe.read_bytes()
    for _ in range(200):
        data = bytearray(whole)
        at = draw.choice([draw.randrange(len(data)), len(data) - draw.randrange(1, 3000)])
        data[at : at + draw.choice([1, 4, 4096])] = draw.randbytes(draw.randrange(8))
        words = udpipe_model.parser_words(bytes(data))
        assert words is None or all(isinstance(word, str) for word in words)


def problem(path, words):
    found = parser_language.familiarity(path, words)
    return found and found.problem()


def unheard(n):
    """Words that no model knows."""
    letters = "abcdefghij"
    return ["q" + "".join(letters[int(digit)] for digit in str(i)) for i in range(n)]


@given(n_known=st.integers(0, 9), n_others=st.integers(0, 60), seed=st.integers(0, 99))
def test_a_problem_is_fewer_than_two_of_five_frequent_words(tiny_udpipe, n_known, n_others, seed):
    known = ["THE", "Dog", "cat", "bird", "man", "woman", "child", "sleeps", "sees"][:n_known]
    words = [*known, *unheard(n_others)[: 50 - n_known]]
    rare = [f"{word}x" for word in unheard(70)]  # rarer than the fifty
    running = words * 600 + rare + [",", "12", "-"] * 5000
    random.Random(seed).shuffle(running)
    frequent = [*words, *rare][:50]
    found = problem(str(tiny_udpipe), running)
    if not words or n_known / len(frequent) >= 0.4:
        assert n_known == 0 or found is None
    else:
        assert f"knows only {n_known} of the 50 most frequent words" in found
        unknown = found.split("unknown: ")[1].split(")")[0].split(", ")
        assert len(unknown) == 5
        assert not {*unknown} & {word.lower() for word in known}


def test_few_words_say_nothing(tiny_udpipe):
    enough = unheard(500)
    assert parser_language.familiarity(str(tiny_udpipe), enough[:499] + ["."] * 99) is None
    assert "knows only 0 of the 50" in problem(str(tiny_udpipe), enough)


def test_decomposed_letters_are_named_as_the_reason(trained):
    composed = ["muž", "žena", "dítě", "zvíře", "kočka", "příroda"]
    nouns = ("dog", "cat", "bird", "woman", "man", "child")  # "woman" before "man", which ends it
    path = trained("", "", dict(zip(nouns, composed, strict=True)))
    assert problem(path, composed * 100) is None
    decomposed = [unicodedata.normalize("NFD", word) for word in composed] * 100
    assert problem(path, decomposed).endswith("has decomposed letters (NFD); make it NFC first")
    assert "of another language" in problem(path, [f"x{word}" for word in decomposed])


def test_lines_are_split_by_the_model(parser):
    text = "The dog sees the cat."
    assert parser.words(text) == ["The", "dog", "sees", "the", "cat", "."]
    assert parser.words("  ") == parser.words("") == []
    assert parser_language.familiarity_with_lines(parser, [text] * 200).unknown == []
    strange = [" ".join(unheard(300)[i : i + 6]) for i in range(0, 300, 6)] * 20
    endless = itertools.chain(strange, itertools.repeat("qqq"))  # only the first lines are read
    found = parser_language.familiarity_with_lines(parser, endless).problem()
    assert re.match(rf"{re.escape(parser.name)} knows only [0-3] of the 50 most frequent", found)


def watch(parser, parses):
    """The number of parses that came through, and each warning with the number before it."""
    warnings, through = [], []

    def warn(text):
        warnings.append((len(through), text))

    for one in parser_language.watched(parses, parser.name, warn):
        through.append(one)
    return len(through), warnings


def test_the_warning_comes_once_as_soon_as_there_are_enough_words(parser):
    strange = parser.tokens(" ".join(unheard(100)), "1")
    n, ((at, text),) = watch(parser, [strange] * 40)
    assert (n, at) == (40, 20)  # after 2,000 words
    assert "knows only 0 of the 50 most frequent words" in text
    n, ((at, _),) = watch(parser, [strange] * 6)
    assert (n, at) == (6, 6)  # at the end
    assert watch(parser, [strange] * 4) == (4, [])  # too few


@pytest.mark.parametrize("content", [None, b"", b"another file"])
def test_a_file_that_changes_while_its_model_is_in_use_is_no_error(tiny_udpipe, tmp_path, content):
    path = tmp_path / "model"
    shutil.copy(tiny_udpipe, path)
    parser = udpipe.Parser(str(path))
    strange = [parser.tokens(" ".join(unheard(100)), "1")] * 30
    assert len(watch(parser, strange)[1]) == 1
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert watch(parser, strange) == (30, [])


def test_trees_of_others_and_failed_lines_do_not_count(parser):
    strange = parser.tokens(" ".join(unheard(100)), "1")
    known = udpipe.Parsed(strange.conllu, is_known=True)
    failed = udpipe.failed("x", "2", "because")
    assert watch(parser, [known, failed] * 30) == (60, [])
    n, ((at, _),) = watch(parser, [known, strange] * 30)
    assert (n, at) == (60, 40)


@pytest.fixture(scope="module")
def parsers(data):
    """Language -> a parser that was trained on a real treebank."""
    return {
        language: udpipe.Parser(str(data / "udpipe" / f"{model}.udpipe"))
        for language, model in MODELS.items()
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "of_text"), [(path, language) for path in TEXTS for language in TEXTS[path]]
)
def test_real_texts_and_parsers_go_together_if_their_language_is_the_same(
    data, parsers, path, of_text
):
    file = data / path.format(of_text)
    with (gzip if file.suffix == ".gz" else lzma).open(file, "rt") as lines:
        text = [line.rstrip("\n") for line in itertools.islice(lines, 400)]
    for language, parser in parsers.items():
        for some in (text, text[:60]):
            found = parser_language.familiarity_with_lines(parser, some)
            assert found.is_enough == (language == of_text), (language, found.problem())
