"""`synmt translate` by decoders of trees with random weights: always one tree for each line."""

from __future__ import annotations

import json

import pytest
from support.tree_workshop import (
    EMPTY,
    SOURCE_FIELDS,
    TREES,
    blocks,
    check_trees,
    is_arc,
    is_projective_tree,
    text,
)

# --- one tree for each line ----------------------------------------------------------------------


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize(
    "variant",
    [pytest.param(one, marks=[pytest.mark.long] * ("+" in one)) for one in TREES],
)
def test_random_weights_write_one_tree_for_each_line(shop, source, variant, beam):
    options = ("--beam", beam, "--format", "conllu")
    for limit in (1, 2, 5):
        done = shop.translate(variant, *options, "--max-output-len", limit, stdin=source)
        check_trees(done.stdout, 7)
    done = shop.translate(variant, *options, "-o", "long.conllu", stdin=source)
    lines = check_trees((shop.folder / "long.conllu").read_bytes(), 7)
    assert [bool(line) for line in lines] == [True, True, False, True, True, True, False]
    plain = shop.translate(variant, "--beam", beam, stdin=source).stdout
    assert plain.decode() == "".join(f"{line}\n" for line in lines)
    assert shop("evaltree", "long.conllu", "long.conllu", "--get", "las").stdout == b"100.00\n"


@pytest.mark.parametrize("variant", ["linearized", "parent", "gcn"])
def test_the_length_is_in_pieces(shop, source, variant):
    for limit in (1, 2, 5):
        done = shop.translate(variant, "--max-output-len", limit, "--format", "jsonl", stdin=source)
        for record in map(json.loads, done.stdout.splitlines()):
            pieces = [token for token in record.get("hyp_transitions", ()) if not is_arc(token)]
            assert len(pieces) <= max(1, limit - 1)  # the end of sentence counts
            full = bool(pieces) and len(pieces) + 1 >= limit
            assert record.get("cut", False) == full


@pytest.mark.parametrize("variant", ["linearized", "parent", "gcn"])
def test_direction_and_label_may_be_two_tokens(shop, variant):
    shop.featurize("train", "split.model", "split.jsonl", "--split-transitions")
    shop.featurize("dev", "split.model", "split.dev.jsonl", "--split-transitions")
    source = (shop.folder / "split.dev.jsonl").read_bytes() + EMPTY
    shop.train(variant, run="split", train="split.jsonl", options=("--dev", "split.dev.jsonl"))
    for limit in (2, 9):
        options = ("--max-output-len", limit, "--beam", 3)
        trees = shop.translate("split", *options, "--format", "conllu", stdin=source).stdout
        lines = check_trees(trees, 6)
        plain = shop.translate("split", *options, stdin=source).stdout
        assert plain.decode() == "".join(f"{line}\n" for line in lines)


def test_text_and_trees_in_one_search(shop, source):
    options = ("--beam", 2, "--max-output-len", 6, "--unconstrained")
    text = shop.translate("parent", *options, stdin=source)
    trees = shop.translate("parent", *options, "--format", "conllu", stdin=source)
    both = shop.translate("parent", *options, "--trees-out", "both.conllu", stdin=source)
    assert both.stdout == text.stdout
    assert (shop.folder / "both.conllu").read_bytes() == trees.stdout
    assert both.stderr == trees.stderr  # each repair is counted once


def test_unconstrained_search_keeps_the_format(shop, source):
    for variant in ("linearized", "parent", "gcn"):
        options = ("--unconstrained", "--max-output-len", 6)
        lines = shop.translate(variant, *options, stdin=source).stdout.decode().split("\n")
        assert len(lines) == 8
        done = shop.translate(variant, *options, "--format", "conllu", stdin=source)
        sentences = blocks(done.stdout)
        assert [text(sentence) for sentence in sentences] == lines[:-1]
        assert all(is_projective_tree(rows) for _, rows in sentences)
        assert b"of 7 segments made no tree: it was repaired" in done.stderr


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_unconstrained_search_may_write_no_word(shop, source, limit):
    options = ("--unconstrained", "--max-output-len", limit, "--format", "conllu")
    for variant in ("linearized", "parent", "gcn"):
        assert len(blocks(shop.translate(variant, *options, stdin=source).stdout)) == 7


@pytest.mark.parametrize(
    ("heads", "good"),
    [
        ((0,), True),
        ((2, 0, 2), True),
        ((2, 0, 0), False),
        ((3, 0, 2), False),  # over the root
        ((3, 4, 0, 3), False),  # two arcs that cross
    ],
)
def test_the_judge_of_trees(heads, good):
    rows = [["", *[""] * 5, head, "dep" if head else "root"] for head in heads]
    assert is_projective_tree(rows) == good


# --- search --------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["linearized", "parent", "gcn", "gps+gcn"])
def test_batches_change_nothing(shop, source, variant):
    options = ("--max-output-len", 12, "--format", "tsv", "--nbest", 2)
    together = shop.translate(variant, *options, "--batch-size", 64, stdin=source).stdout
    assert shop.translate(variant, *options, "--batch-size", 1, stdin=source).stdout == together
    assert shop.translate(variant, *options, "--line-buffered", stdin=source).stdout == together
    assert shop.translate(variant, *options, stdin=source).stdout == together


@pytest.mark.parametrize("variant", ["linearized", "parent", "gcn", "gps+gcn"])
def test_scores_of_search_are_those_of_training(shop, source, variant):
    """What search finds, given as dev data, has the log-probability that search gave it."""
    options = ("--lenpen", 0, "--nbest", 4, "--max-output-len", 9, "--format", "jsonl")
    found, log_p, n_tokens = [], 0.0, 0
    for record in map(
        json.loads, shop.translate(variant, *options, stdin=source).stdout.splitlines()
    ):
        for hypothesis in record["nbest"]:
            tokens = hypothesis["hyp_transitions"]
            if "closing" in hypothesis:  # its score is that of the tree before it was closed
                continue
            pieces = [token for token in tokens if not is_arc(token) and token != "<+>"]
            target = {"tgt": hypothesis["hyp"], "tgt_pieces": pieces, "transitions": tokens}
            found.append({**{key: record[key] for key in SOURCE_FIELDS}, **target})
            log_p += hypothesis["score"]
            n_tokens += len(tokens) + 1
    shop.write("found.jsonl", found)
    shop.train(variant, run="again", options=("--dev", "found.jsonl"))
    nll = next(event["nll"] for event in shop.records("again/metrics.jsonl") if "nll" in event)
    assert found
    assert nll * n_tokens == pytest.approx(-log_p, rel=1e-4)


def test_the_n_best_are_transitions_that_delinearize_reads(shop, source):
    for variant in ("linearized", "parent", "gcn"):
        options = ("--nbest", 4, "--format", "jsonl", "--max-output-len", 12)
        done = shop.translate(variant, *options, stdin=source)
        nbest = [best for line in done.stdout.splitlines() for best in json.loads(line)["nbest"]]
        fields = [{"src": "", "transitions": best["hyp_transitions"]} for best in nbest]
        lines = [json.dumps(record) + "\n" for record in fields]
        given = ("delinearize", "--spm", "spm.model", "--from", "jsonl")
        text_of = shop(*given, stdin="".join(lines).encode(), status=0).stdout.decode()
        # Hypotheses that are closed may be the same tree: a segment may have fewer than four.
        assert 5 <= len(nbest) <= 20
        assert text_of == "".join(best["hyp"] + "\n" for best in nbest)
        trees = shop(*given, "--format", "conllu", stdin="".join(lines).encode(), status=0).stdout
        assert check_trees(trees, len(nbest)) == text_of.splitlines()


def test_long_sources_are_translated_in_parts(shop):
    record = shop.records("dev.jsonl")[0]
    given = b"\n" + record["src"].encode() + b"\n"
    done = shop.translate("parent", "--max-pieces", 6, "--format", "conllu", stdin=given)
    comments = [comments for comments, _ in blocks(done.stdout)]
    n = len(comments)
    assert n - 1 >= len(record["pieces"]) / 6 > 1
    assert comments[0]["synmt_status"] == "empty"
    assert {some["synmt_line"] for some in comments[1:]} == {"2"}
    plain = shop.translate("parent", "--max-pieces", 6, stdin=given).stdout.decode()
    assert plain.split("\n") == ["", " ".join(check_trees(done.stdout, n)[1:]), ""]


@pytest.mark.parametrize("models", ["parent gcn", "linearized parent gps+gcn"])
def test_ensembles_write_one_tree(shop, source, models):
    options = ("--format", "conllu", "--max-output-len", 9)
    trees = shop.translate(models, *options, stdin=source).stdout
    check_trees(trees, 7)
    turned = " ".join(reversed(models.split()))
    assert shop.translate(turned, *options, stdin=source).stdout == trees


def test_one_model_twice_is_that_model(shop, source):
    options = ("--format", "tsv", "--max-output-len", 9)
    once = shop.translate("gcn", *options, stdin=source).stdout
    assert shop.translate("gcn gcn", *options, stdin=source).stdout == once


@pytest.mark.parametrize(
    ("models", "options", "status", "message"),
    [
        ("vanilla", ("--format", "conllu"), 78, b"vanilla writes no trees"),
        ("bitran", ("--format", "conllu"), 78, b"bitran writes no trees"),
        ("vanilla", ("--trees-out", "t"), 78, b"which --trees-out needs"),
        ("bitran", ("--unconstrained",), 78, b"which --unconstrained needs"),
        ("parent vanilla", (), 78, b"all of an ensemble write trees, or none"),
        ("bitran gcn", (), 78, b"all of an ensemble write trees, or none"),
        ("parent", ("--format", "conllu", "--nbest", 2), 2, b"--nbest"),
        ("parent", ("--format", "conllu", "--trees-out", "t"), 2, b"formats other than conllu"),
        ("parent", ("--trees-out", "t", "-o", "./t"), 2, b"must be different files"),
        ("parent", ("--max-output-len", 0), 2, b"--max-output-len"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(shop, source, models, options, status, message):
    done = shop.translate(models, *options, stdin=source, status=status)
    assert (done.stdout, done.stderr.count(b"\n")) == (b"", 1)
    assert message in done.stderr
