"""No value of a record or a comment writes a line or a column of its own."""

import io
import json
from collections import Counter
from types import SimpleNamespace

from hypothesis import example, given
from hypothesis import strategies as st

from synmt_cli.core.challenge.phenomena import ChallengeSegment
from synmt_cli.core.jobs.delinearize import DelinearizeJob, TransitionLine
from synmt_cli.core.jobs.translation.output import as_text, as_tsv, written
from synmt_cli.core.segments.comments import comment, commented, is_placeholder, placeholder
from synmt_cli.core.segments.segment import TreeSegment
from synmt_cli.core.text import udpipe
from synmt_cli.core.transitions.delinearizer import Delinearizer
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.formats.record import FAILED, SKIPPED, Record
from synmt_cli.io.reading import Source

FORGED = "7\n# sent_id = 8\n1\tx\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
anything = st.text(
    st.one_of(
        st.sampled_from("\n\r\t\0\u2028\u2029\x85\x0b\x0c\x1c #="),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=20,
)
one_word = ["1", "a", "_", "_", "_", "_", "0", "root", "_", "_"]


def read(data):
    """The sentences that any reader finds in CoNLL-U."""
    source = Source("x", io.BufferedReader(io.BytesIO(data)))
    return list(conllu.read(source))


def only(data):
    """The only sentence, which must have one row; tests count its comments."""
    (sentence,) = read(data)
    assert len(sentence.rows) == 1
    return sentence


@given(anything, anything)
@example(FORGED, "x\r")
def test_a_comment_is_one_line(id, text):
    block = conllu.encoded(placeholder(comment("sent_id", id) + "\n", FAILED, text))
    sentence = only(block)
    assert len(sentence.comments) == 2 + bool(text)
    if not {"\n", "\0"} & {*id}:
        assert sentence.comment("sent_id") == id
    changed = commented(sentence, {"synmt_filtered": text, "synmt_tgt": id})
    assert len(only(conllu.to_bytes(changed)).comments) == 4 + bool(text)


@given(anything, anything, st.sampled_from(["text", "conllu"]))
@example(FORGED, FORGED, "conllu")
def test_a_record_becomes_one_block_or_one_line(id, reason, form):
    fields = {"id": id, "src": "s", "status": "failed", "reason": reason, "transitions": []}
    line = TransitionLine("x", 1, "1", json.dumps(fields).encode(), is_json=True)
    data = DelinearizeJob(Delinearizer(), form).run(line).data
    if form == "text":
        assert data == b"\n"
    else:
        only(data)


def test_a_line_that_was_skipped_has_the_words_of_its_text_unless_it_has_a_tree():
    lines = "synmt_status = skipped\n# text = a b c"
    (placeholder_only,) = read(conllu.encoded(placeholder("# text = a b c\n", SKIPPED)))
    assert is_placeholder(placeholder_only)
    assert TreeSegment([placeholder_only]).length == 3
    (with_tree,) = read(conllu.encoded(f"# {lines}\n" + "\t".join(one_word) + "\n\n"))
    assert not is_placeholder(with_tree)
    assert TreeSegment([with_tree]).length == 1


@given(anything, anything, anything)
@example(FORGED, "a\tb", "a")
def test_no_word_or_label_of_a_record_is_more_than_that(id, form, label):
    tokens = [form, "b", f"LEFT-ARC:{label}"]
    fields = {"id": id, "src": "s", "transitions": tokens}
    line = TransitionLine("x", 1, "1", json.dumps(fields).encode(), is_json=True)
    try:
        data = DelinearizeJob(Delinearizer(), "conllu").run(line).data
    except DataError:
        return
    (sentence,) = read(data)
    assert [row[0] for row in sentence.rows] == ["1", "2"]


@given(anything, st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=9))
@example(FORGED, "a\tb")
def test_a_translation_is_one_line_or_one_block(vocabulary, id, text):
    best = SimpleNamespace(text=text, score=-1.0, cut=False, transitions=[[]])
    one = SimpleNamespace(record=Record(id, "s"), lines=[best], n_parts=1)
    assert as_text(one).count(b"\n") == 1
    tsv = as_tsv(one)
    assert (tsv.count(b"\n"), tsv.count(b"\t")) == (1, 2)
    only(written("conllu", vocabulary, Counter(), 1)(one))


@given(anything.filter(lambda text: "\n" not in text), anything)
def test_a_line_without_a_tree_is_one_block(text, reason):
    only(conllu.encoded(udpipe.failed(text.replace("\0", ""), "1", reason).conllu))


@given(anything, anything.filter(lambda text: "\n" not in text))
@example("a\tb", "c\td")
def test_a_segment_of_a_challenge_set_has_the_columns_that_were_asked_for(id, text):
    sentence = only(conllu.encoded(comment("sent_id", id) + "\n" + "\t".join(one_word) + "\n\n"))
    segment = ChallengeSegment(TreeSegment([sentence]), 1, [[]])
    data = segment.written("ids", [text])
    assert (data.count(b"\n"), data.count(b"\t")) == (1, 1)
    data = segment.written("ids")
    assert (data.count(b"\n"), data.count(b"\t")) == (1, 0)
