"""Pairs from any kind of stream pass through the tests: order, sameness, errors."""

import io
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synmt_cli.core.filtering import criteria
from synmt_cli.core.filtering.criteria import Criterion
from synmt_cli.core.filtering.languages import Languages
from synmt_cli.core.filtering.line_hashes import Digests
from synmt_cli.core.filtering.pairs import pairs
from synmt_cli.core.filtering.sieve import Sieve
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.segments.reader import READERS
from synmt_cli.core.segments.segment import line
from synmt_cli.core.text.udpipe import failed
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu, record
from synmt_cli.io.reading import Source

any_line = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")).filter(
    lambda text: not text.startswith("\ufeff")
)
few = st.sampled_from(["", " ", "a", "a b", "a  b", "a b c d", "ä", "a\u0308", "a\r", "\u2028x"])


@pytest.fixture(scope="module")
def languages():
    return Languages("en-de")


def source(content, name="x"):
    return Source(name, io.BufferedReader(io.BytesIO(content)))


def usual():
    return [
        Criterion("status", criteria.status),
        Criterion("min-len", partial(criteria.length, least=1)),
        Criterion("max-len", partial(criteria.length, most=3)),
        Criterion("ratio", partial(criteria.ratio, most=2)),
    ]


def unique(side="pair"):
    return Criterion("dedup", partial(criteria.repeated, seen=Digests(), side=side))


def sifted(kind, content, target=None, jobs=1, side="pair"):
    """(kept source and target lines, reasons)."""
    beside = None if target is None else source(target, "tgt")
    sieve = Sieve(usual(), None, unique(side))
    found = list(sieve.sift(pairs(READERS[kind](source(content)), beside), jobs))
    return [pair.texts for pair, reason in found if not reason], [reason for _, reason in found]


@given(st.lists(st.tuples(any_line | few, any_line | few), max_size=8))
def test_text_and_its_records_give_the_same_pairs(both):
    sides = [b"".join(map(line, side)) for side in zip(*both, strict=True)] or [b"", b""]
    records = b"".join(
        record.to_bytes(Featurizer().of_text(src, str(i), tgt)) for i, (src, tgt) in enumerate(both)
    )
    as_text = sifted("text", *sides)
    assert as_text == sifted("jsonl", records)
    assert len(as_text[1]) == len(both)
    assert as_text[0] == [pair for pair, why in zip(both, as_text[1], strict=True) if not why]


@given(st.lists(any_line | few, max_size=8))
def test_a_line_of_text_comes_out_as_it_was_read(lines):
    content = b"".join(map(line, lines))
    found = list(pairs(READERS["text"](source(content)), source(content)))
    assert [pair.texts for pair in found] == [(one, one) for one in lines]
    assert b"".join(pair.written()[0] for pair in found) == content
    assert b"".join(pair.written()[1] for pair in found) == content
    columns = [one.replace("\t", " ") for one in lines]  # three in each line, whatever it holds
    assert b"".join(pair.annotated("") for pair in found) == b"".join(
        line(f"ok\t{one}\t{one}") for one in columns
    )


@given(st.lists(any_line | few, max_size=8), st.integers(0, 8))
def test_two_parts_give_what_the_whole_gives(lines, cut):
    sieve = Sieve(usual()[:3])
    found = [
        [reason for _, reason in sieve.sift(pairs(READERS["text"](source(content))))]
        for content in (b"".join(map(line, part)) for part in (lines, lines[:cut], lines[cut:]))
    ]
    assert found[0] == found[1] + found[2]


TREES = (
    "# text = a b\n1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n"
    + failed("c\r", "2", "no tree").conllu
    + "# sent_id = 3.1\n# text = a. \n# synmt_line = 3\n1\ta.\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    + "# sent_id = 3.2\n# text = b\n# synmt_line = 3\n1\tb\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
)


def test_blocks_of_one_line_are_one_segment_and_stay_whole():
    content = conllu.encoded(TREES)
    kept, reasons = sifted("conllu", content, b"x\ny\nz\n")
    assert kept == [("a b", "x"), ("a. b", "z")]
    assert reasons == ["", "status: failed: no tree", ""]
    found = list(pairs(READERS["conllu"](source(content))))
    assert b"".join(pair.written()[0] for pair in found) == content


def test_what_is_marked_is_read_with_its_status_and_text():
    marked = b"".join(
        pair.annotated("max-len: 9 source words")
        for pair in pairs(READERS["conllu"](source(conllu.encoded(TREES))))
    )
    again = list(pairs(READERS["conllu"](source(marked))))
    assert [pair.segment.text for pair in again] == ["a b", "c\r", "a. b"]
    assert [pair.segment.status for pair in again] == ["skipped", "failed", "skipped"]
    assert [pair.segment.reason for pair in again][1:] == ["no tree", "max-len: 9 source words"]


def test_a_tree_that_says_it_is_ok_can_be_marked():
    block = b"# synmt_status = ok\n1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    (pair,) = pairs(READERS["conllu"](source(block)))
    (again,) = pairs(READERS["conllu"](source(pair.annotated("why"))))
    assert (again.segment.status, again.segment.reason) == ("skipped", "why")


def test_a_marked_record_keeps_its_other_fields():
    content = (
        b'{"src": "a",  "x":[1]}\n{"src":"","x":2}\n{"src":"b","status":"failed","reason":"r"}\n'
    )
    found = list(pairs(READERS["jsonl"](source(content))))
    assert b"".join(pair.annotated("") for pair in found) == content
    marked = [pair.annotated("lang: no") for pair in found]
    assert marked[0] == b'{"src":"a","x":[1],"status":"skipped","reason":"lang: no"}\n'
    assert b"".join(marked[1:]) == content[content.index(b"\n") + 1 :]  # they had a status


def test_the_first_test_that_fails_gives_the_reason_and_the_last_sees_the_rest():
    content = b"a b c d\na\na\n \na b c d\n"
    assert sifted("text", content, b"a b\nx\nx\nx\nx\n")[1] == [
        "max-len: 4 source words",
        "",
        "dedup: pair seen before",
        "min-len: 0 source words",
        "max-len: 4 source words",
    ]


def test_pairs_of_blank_lines_pass_everything_if_they_may(languages):
    sieve = Sieve(usual()[2:], languages, unique(), keep_empty=True)
    found = pairs(READERS["text"](source(b"\n \na\n")), source(b"\n\n\n"))
    assert [reason for _, reason in sieve.sift(found)] == ["", "", "ratio: 1 : 0 words"]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("n", "target"), [(2, b"1\n2\n"), (4, b"1\n2\n3\n4"), (0, b"")])
def test_another_number_of_lines_is_refused_after_the_common_ones(languages, jobs, n, target):
    sieve = Sieve([], languages)
    found = []
    both = pairs(READERS["text"](source(b"a\nb\nc\n")), source(target, "tgt"))
    with pytest.raises(DataError, match=f"tgt: {n} lines, but the source has 3"):
        found.extend(sieve.sift(both, jobs))
    assert len(found) == min(n, 3)


@settings(max_examples=5)
@given(st.lists(st.sampled_from(["He is here.", "Er ist da.", "12", "", "a b c d e f"])))
def test_processes_change_nothing(languages, lines):
    content = b"".join(map(line, lines))

    def reasons(jobs):
        sieve = Sieve(usual(), languages, unique("src"))
        found = pairs(READERS["text"](source(content)), source(content))
        return [reason for _, reason in sieve.sift(found, jobs)]

    assert reasons(1) == reasons(3)
