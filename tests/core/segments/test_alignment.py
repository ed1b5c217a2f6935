import gzip
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.work import takes_linear_time

from synmt_cli.core.segments.alignment import piece_words, record_of
from synmt_cli.core.segments.comments import lines
from synmt_cli.errors import quoted
from synmt_cli.formats import conllu
from synmt_cli.formats.record import from_bytes, to_bytes
from synmt_cli.io.reading import Source


def sentences(text):
    return list(conllu.read(Source("f", io.BytesIO(text.encode()))))


def block(forms, comments=(), miscs=None, ranges=None):
    """A block whose words all depend on the first; ranges: word -> (last, form, misc)."""
    rows = []
    for i, form in enumerate(forms, 1):
        if ranges and i in ranges:
            last, token, misc = ranges[i]
            rows.append(f"{i}-{last}\t{token}\t_\t_\t_\t_\t_\t_\t_\t{misc}")
        misc = miscs[i - 1] if miscs else "_"
        rows.append(f"{i}\t{form}\t_\tX\t_\t_\t{int(i > 1)}\tdep\t_\t{misc}")
    return "\n".join([*(f"# {comment}" for comment in comments), *rows]) + "\n\n"


def record(*blocks):
    found, _ = record_of(sentences("".join(blocks)), "7")
    assert from_bytes(to_bytes(found)[:-1]) == found
    return found


def test_no_sentences_are_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="at least one sentence"):
        record_of([], "1")


def cuts(found):
    return [found.src[begin:end] for begin, end in found.spans]


@pytest.mark.parametrize(
    ("text", "forms", "expected"),
    [
        ("a b.", ["a", "b", "."], ["a", "b", "."]),
        ("  a   b. ", ["a", "b", "."], ["a", "b", "."]),
        ("a\u00a0b\u2028c", ["a", "b", "c"], ["a", "b", "c"]),
        ("10\u00a0000 x", ["10 000", "x"], ["10\u00a0000", "x"]),
        ("10000 x", ["10 000", "x"], ["10000", "x"]),
        ("10 000 x", ["10000", "x"], ["10 000", "x"]),
        ("a \u3000 b", ["a", "\u3000", "b"], ["a", "\u3000", "b"]),
        ("a b", ["a", "\u3000", "b"], ["a", "", "b"]),
        ("▁x <s>", ["▁x", "<s>"], ["▁x", "<s>"]),
        ("e\u0301a", ["e\u0301", "a"], ["e\u0301", "a"]),
        ("😀😀", ["😀", "😀"], ["😀", "😀"]),
    ],
)
def test_tokens_are_found_in_the_text(text, forms, expected):
    found = record(block(forms, [f"text = {text}"]))
    assert found.src == text
    assert found.words == forms
    assert cuts(found) == expected


def test_words_of_a_multiword_token_share_its_span():
    text = block(["Das", "zu", "dem", "x"], ["text = Das zum x"], ranges={2: (3, "zum", "_")})
    found = record(text)
    assert found.words == ["Das", "zu", "dem", "x"]
    assert cuts(found) == ["Das", "zum", "zum", "x"]
    last = record(block(["a", "b"], ["text = xy"], ranges={1: (2, "xy", "_")}))
    assert last.spans == [[0, 2], [0, 2]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a x", "token 'b' is not at character 3 of the text"),
        ("a", "token 'b' is not at character 2 of the text"),
        ("a b c", "no token for 'c' at character 4 of the text"),
        ("", "token 'a' is not at character 1 of the text"),
    ],
)
def test_other_tokens_than_the_text_fail(text, reason):
    found = record(block(["a", "b"], [f"text = {text}"]))
    assert (found.status, found.reason, found.src, found.words) == ("failed", reason, text, None)


@pytest.mark.parametrize(
    ("text", "forms", "character"),
    [
        ("The dog barks", ["The", "dogs"], 5),  # not where `dog` ends
        ("The  dog", ["The", "dogs"], 6),
        ("ab", ["a", "bc"], 2),
        ("a \u2003x", ["a", "x y"], 4),
        ("a ", ["a", "b"], 3),
        ("\U0001f600 x", ["\U0001f600", "y"], 3),  # one character, whatever its bytes
    ],
)
def test_a_token_is_missed_where_it_would_begin(text, forms, character):
    reason = record(block(forms, [f"text = {text}"])).reason
    expected = f"token '{forms[-1]}' is not at character {character} of the text"
    assert reason == expected
    assert text[: character - 1].split() == forms[:-1]


@pytest.mark.parametrize(
    ("text", "form", "difference"),
    [
        ("\xe9t\xe9 x", "e\u0301te\u0301", "Unicode composition (NFC, NFD)"),
        ("e\u0301te\u0301 x", "\xe9t\xe9", "Unicode composition (NFC, NFD)"),
        ("\u304b\u3099\u3044x", "\u304c", "Unicode composition (NFC, NFD)"),
        ("The x", "the", "case"),
        ("the,", "The", "case"),
        ("STRASSE", "stra\xdfe", "case"),
        ("\ufb01nd", "find", "compatibility characters (NFKC)"),
        ("1\u0662", "\uff11\u0662", "compatibility characters (NFKC)"),
        ("co\xadop x", "coop", "invisible characters"),
        ("coop x", "co\u200bop", "invisible characters"),
        ("then", "The", None),
        ("tha", "the", None),
        ("x", "\xe9", None),
        ("", "a", None),
    ],
)
def test_what_looks_alike_is_said_to_differ(text, form, difference):
    reason = record(block(["a", form], [f"text = a {text}"])).reason
    assert reason.startswith(f"token {quoted(form)} is not at character 3 of the text")
    told = reason.partition("of the text")[2]
    expected = f", which differs in {difference}: normalise one of them" if difference else ""
    assert told == expected


def test_token_range_helps_where_characters_do_not():
    # U+180E is white space to some tokenizers and none to us.
    miscs = ["TokenRange=0:1", "SpaceAfter=No|TokenRange=2:3"]
    found = record(block(["a", "b"], ["text = a\u180eb"], miscs))
    assert (found.status, found.spans) == ("ok", [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    "ranges", [["0:1", "2:4"], ["0:1", "1:2"], ["2:3", "0:1"], ["0:1", "9:10"]]
)
def test_token_range_is_not_believed_against_the_text(ranges):
    miscs = [f"TokenRange={span}" for span in ranges]
    assert record(block(["a", "b"], ["text = a\u180eb"], miscs)).status == "failed"
    assert record(block(["a", "b"], ["text = a b"], miscs)).spans == [[0, 1], [2, 3]]


def test_without_text_forms_are_put_together():
    miscs = ["SpaceAfter=No", r"SpacesAfter=\s\t\n", "_", r"SpacesAfter=x", "_"]
    found = record(block("abcde", miscs=miscs))
    assert found.src == "ab \t c d e"
    assert cuts(found) == list("abcde")
    ranges = {2: (3, "zum", "SpaceAfter=No")}
    assert record(block(["x", "zu", "dem", "."], ranges=ranges)).src == "x zum."


def test_a_record_of_an_empty_or_failed_line_has_no_tree():
    for comments, status, reason, words in (
        (["text =   ", "synmt_status = empty"], "empty", None, []),
        (["text = a", "synmt_status = failed", "synmt_reason = why"], "failed", "why", None),
        (["text = a", "synmt_status = failed"], "failed", "synmt_status = failed", None),
        (["text = a", "synmt_status = odd"], "failed", "synmt_status = odd", None),
    ):  # fmt: skip
        found = record(block("_", comments))
        assert (found.status, found.reason, found.words) == (status, reason, words)
        assert found.src == comments[0].removeprefix("text =").removeprefix(" ")


def test_the_id_is_that_of_the_comments():
    assert record(block("a")).id == "7"
    assert record(block("a", ["sent_id = x-1"])).id == "x-1"
    assert record(block("a", ["sent_id ="])).id == "7"
    assert record(block("a", ["sent_id = 3.1", "synmt_line = 3"])).id == "3"


PARTS = (
    block(["a", "."], ["sent_id = 1.1", "text = a.  ", "synmt_line = 1"]),
    block(
        ["b", "c"], ["sent_id = 1.2", "text = b c", "synmt_line = 1"], ranges={1: (2, "b c", "_")}
    ),
    block(["d"], ["sent_id = 1.3", "text =  d ", "synmt_line = 1"]),
)


def test_sentences_of_a_line_are_joined():
    found = record(*PARTS)
    assert found.src == "a.  b c d "
    assert found.words == ["a", ".", "b", "c", "d"]
    assert found.heads == [-1, 0, -1, 2, -1]
    assert found.sents == [0, 2, 4]
    assert cuts(found) == ["a", ".", "b c", "b c", "d"]


def test_a_trimmed_text_is_filled_up_by_token_range():
    parts = (
        block("a", ["text = a", "synmt_line = 1"], ["TokenRange=0:1"]),
        block("b", ["text = b", "synmt_line = 1"], ["TokenRange=3:4"]),
        block("c", ["synmt_line = 1"], ["TokenRange=999999999:999999999"]),
    )
    assert record(*parts).src == "a  b c"  # c's cannot be a place in this line


def test_token_range_may_count_from_the_beginning_of_the_document():
    """UDPipe's does; only that of `synmt parse` counts from the beginning of the line."""
    parts = (
        block("a.", ["text =  a.", "synmt_line = 7"], ["TokenRange=41:42", "TokenRange=42:43"]),
        block("b", ["text = b", "synmt_line = 7"], ["TokenRange=45:46"]),
    )
    assert record(*parts).src == " a.  b"
    restarting = parts[0], parts[1].replace("45:46", "0:1")
    assert record(*restarting).src == " a. b"


def test_sentences_without_token_range_stand_apart_unless_misc_says_otherwise():
    line = "synmt_line = 1"
    parts = (
        block("a", ["text = a", line]),
        block("b", ["text = b", line], ["SpaceAfter=No"]),
        block("c", ["text = c ", line]),
        block("d", [line]),
    )
    found = record(*parts)
    assert found.src == "a bc d"
    assert cuts(found) == ["a", "b", "c", "d"]


def test_lines_begin_where_the_mark_changes():
    lone = block("x", ["sent_id = 9"])
    text = "".join([lone, *PARTS, *PARTS[:2], PARTS[0].replace("= 1", "= 2"), lone, lone])
    assert [len(group) for group in lines(sentences(text))] == [1, 3, 2, 1, 1, 1]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=8),
    st.lists(st.integers(1, 4), max_size=8),
)
def test_each_piece_goes_to_the_token_it_overlaps_most(tokens, lengths):
    spans, at = [], 0
    for length, gap in tokens:
        spans.append([at, at + length])
        at += length + gap
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    offsets = list(zip([0, *ends], ends, strict=False))
    words = [10 * i for i in range(len(spans))]

    def overlap(i, begin, end):
        return max(0, min(end, spans[i][1]) - max(begin, spans[i][0]))

    for (begin, end), found in zip(offsets, piece_words(offsets, spans, words), strict=True):
        overlaps = [overlap(i, begin, end) for i in range(len(spans))]
        most = max(overlaps, default=0)
        assert found == (10 * overlaps.index(most) if most else -1)


word = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1)


@given(st.lists(st.tuples(word, st.sampled_from(["", " ", "  ", "\u00a0", "\u2028"])), min_size=1))
def test_spans_cut_out_the_forms(tokens):
    text = "".join(form + space for form, space in tokens)
    found = record(block([form for form, _ in tokens], [f"text = {text}"]))
    assert cuts(found) == [form for form, _ in tokens]


@pytest.mark.parametrize("name", ["en_ewt-dev", "de_gsd-dev", "de_lit"])
def test_every_treebank_sentence_is_found_in_its_text(data, name):
    raw = gzip.decompress((data / "ud" / f"{name}.conllu.gz").read_bytes())
    for sentence in conllu.read(Source("f", io.BytesIO(raw))):
        found, tokens = record_of([sentence], "1")
        assert found.status == "ok"
        assert [found.src[b:e] for b, e in tokens.spans] == [row[1] for row in tokens.rows]
        assert len(found.spans) == len(sentence.words)


def test_a_great_line_takes_linear_time():
    def make(n):
        rng = random.Random(3)
        forms = [rng.choice(["a", "bc", "def"]) for _ in range(n)]
        great_range = {2: (n, " ".join(forms[1:]), "_")}
        (one,) = sentences(block(forms, ["text = " + "  ".join(forms)], ranges=great_range))
        return one

    def check(one):
        found, tokens = record_of([one], "1")
        offsets = [(i, i + 1) for i in range(len(found.src))]
        assert piece_words(offsets, tokens.spans, tokens.first_words)[-1] == 1

    assert takes_linear_time(check, make, 100_000)


def test_a_skipped_line_of_several_sentences_keeps_its_text():
    marked = ["synmt_line = 3", "synmt_status = skipped", "synmt_reason = max-len: 2 words"]
    first = block(["A", "."], ["sent_id = 3.1", "text = A. ", *marked], ["SpaceAfter=No", "_"])
    second = block(["B"], ["sent_id = 3.2", "text = B", marked[0]])
    found = record(first, second)
    assert (found.status, found.reason) == ("skipped", "max-len: 2 words")
    assert (found.id, found.src, found.words) == ("3", "A. B", None)
