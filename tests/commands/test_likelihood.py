"""`synmt likelihood`: one log-probability for each line, as search and an explicit loop give it."""

from __future__ import annotations

import json
import math
import os
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.program import ROOT
from support.tree_workshop import EMPTY, SOURCE_FIELDS

from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.decoding import ensemble
from synmt_cli.core.decoding.hypothesis import LengthLimit, Rules
from synmt_cli.core.decoding.search import search
from synmt_cli.core.decoding.translator import SearchSettings
from synmt_cli.core.jobs.translation.job import Wanted, ending_at_failures
from synmt_cli.core.jobs.translation.likelihood import LikelihoodJob
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS
from synmt_cli.core.trees.arc_standard import NEVER, Move, attachments
from synmt_cli.formats import record as records

CPU = torch.device("cpu")
PIECES = ("short.vanilla", "short.rel", "short.bitran")
TREES = ("linearized", "parent", "gcn", "bitran+linearized")
ENSEMBLES = ("short.vanilla short.bitran", "short.vanilla short.rel", "linearized gcn")


def train_to_end(shop, variant, run, records, *options):
    """Trains a model to end lines after three pieces: with random weights they never end."""
    for name, few in (("train", records), ("dev", records[:5])):
        short = [{**one, "tgt_pieces": one["tgt_pieces"][:3]} for one in few]
        shop.write(f"short.{name}.jsonl", short)
    settings = ("training.lr=0.02", "training.initial_lr=0", "training.warmup=10")
    options = ("--max-steps", 40, "--dev", "short.dev.jsonl", *options)
    shop.train(variant, *settings, run=run, train="short.train.jsonl", options=options)


@pytest.fixture(scope="module", autouse=True)
def short(shop):
    """Trains the runs of PIECES."""
    for run in PIECES:
        train_to_end(shop, run.removeprefix("short."), run, shop.records("train.jsonl"))


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny products are slower with two."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture
def score(shop):
    """`score("gcn parent", "dev.jsonl")` gives a list of (log_prob, length)."""

    def score(models, *arguments, stdin=b""):
        runs = [word for model in models.split() for word in ("-m", model)]
        done = shop("likelihood", *runs, "--threads", 1, *arguments, stdin=stdin, status=0)
        return figures(done.stdout)

    return score


def figures(tsv):
    rows = [row.split("\t") for row in tsv.decode().removesuffix("\n").split("\n")]
    return [(float(log_prob), int(length)) for log_prob, length in rows]


def opened(shop, models):
    return ensemble.load([str(shop.folder / name) for name in models.split()], "best", CPU)


def source_side(loaded, given):
    """The source of one record as the encoders read it."""
    one = records.from_bytes(json.dumps(given).encode())
    encoding = Encoding(loaded.encoding.needs, loaded.encoding.labels)
    ids = Ragged.of([[*loaded.vocabularies.source.ids(one.pieces), EOS]], np.int64)
    features = encoding.ragged([encoding.values(one)])
    return encoding.side(ids, features, np.arange(1))


# --- agreement -----------------------------------------------------------------------------------


def prefix_side(ids, grammar):
    """BOS and the ids, with the tree that these alone have drawn."""
    side = Side(torch.tensor([[BOS, *ids]]))
    if grammar is None:
        return side
    edges = attachments([Move(grammar.moves[id]) for id in ids], grammar.split)
    at = [NEVER, *(NEVER if x == NEVER else x + 1 for x in edges.at)]
    labels = [0, *grammar.labels[ids].tolist()]
    values = {
        "arc": at,
        "head_begin": [0, *(x + 1 for x in edges.begin)],
        "head_end": [0, *(x + 1 for x in edges.end)],
        "arc_label": [0 if x == NEVER else labels[x] for x in at],
    }
    return Side(side.ids, features={name: torch.tensor([own]) for name, own in values.items()})


@torch.inference_mode()
def log_prob_by_steps(models, source, ids):
    """The sum over steps of the log of the mean probability, each step by itself."""
    total = 0.0
    memories = [model.encode(source) for model in models]
    for n, token in enumerate([*ids, EOS]):
        p = 0.0
        for model, memory in zip(models, memories, strict=True):
            states, _ = model.decode(prefix_side(ids[:n], model.grammar), memory)
            p += model.logits(states[0, -1]).double().softmax(-1)[token].item() / len(models)
        total += math.log(p)
    return total


@pytest.mark.parametrize("models", [*PIECES, *TREES, *ENSEMBLES])
def test_it_is_the_sum_of_steps(shop, score, models):
    loaded = opened(shop, models)
    has_trees = loaded.models[0].grammar is not None
    given = shop.records("dev.jsonl")[:3]
    found = score(models, shop.write("few.jsonl", given))
    for one, (log_prob, length) in zip(given, found, strict=True):
        tokens = one["transitions" if has_trees else "tgt_pieces"]
        ids = loaded.vocabularies.target.ids(tokens)
        expected = log_prob_by_steps(loaded.models, source_side(loaded, one), ids)
        assert log_prob == pytest.approx(expected, abs=5e-4)
        is_transition = re.compile(r"(LEFT|RIGHT)-ARC:.*|<\+>").fullmatch
        assert length == 1 + sum(not is_transition(token) for token in tokens)


@pytest.mark.parametrize("models", [*PIECES, *TREES, *ENSEMBLES])
def test_it_is_what_search_gives_to_what_it_finds(shop, score, models):
    loaded = opened(shop, models)
    has_trees = loaded.models[0].grammar is not None
    field = "transitions" if has_trees else "tgt_pieces"
    rules = Rules(beam=9, nbest=9, lenpen=0.6, longest=LengthLimit(0, 6))
    written, expected = [], []
    for given in shop.records("dev.jsonl")[:3]:
        (nbest,) = search(loaded.models, source_side(loaded, given), rules)
        for one in nbest:
            if one.n_closing or (one.cut and not has_trees):
                continue  # their score is that of a prefix
            tokens = loaded.vocabularies.target.names(one.ids)
            written.append({**{key: given[key] for key in SOURCE_FIELDS}, field: tokens})
            expected.append(one)
    found = score(models, shop.write("hypotheses.jsonl", written))
    assert len(found) > 5
    for (log_prob, length), one in zip(found, expected, strict=True):
        assert length == one.length
        assert log_prob == pytest.approx(one.log_prob, abs=5e-4)
        assert log_prob / length**0.6 == pytest.approx(one.score, abs=5e-4)


def test_it_is_the_score_that_translate_writes_of_trees(shop, score):
    done = shop.translate("gcn", "--nbest", 3, "--format", "jsonl", "dev.jsonl")
    given, expected = [], []
    for one in map(json.loads, done.stdout.splitlines()):
        for hypothesis in one["nbest"]:
            if "closing" not in hypothesis:
                given.append({**one, "transitions": hypothesis["hyp_transitions"]})
                expected.append(hypothesis["score"])
    found = [log_p / n**0.6 for log_p, n in score("gcn", shop.write("n.jsonl", given))]
    assert found == pytest.approx(expected, abs=5e-4)
    assert len(found) > 2


def test_it_is_the_score_that_translate_writes_of_lines(shop, score):
    """Every piece is a word, so that a line has one encoding."""
    shop("vocab", "train", "--type", "word", "train.en", "train.de", "-o", "words", status=0)
    plain = ("--from", "text", "--tgt", "train.de", "train.en", "-o", "words.jsonl")
    shop("featurize", "--spm", "words", *plain, status=0)
    train_to_end(shop, "vanilla", "words.run", shop.records("words.jsonl"), "--spm", "words")
    done = shop.translate("words.run", "--format", "tsv", "--nbest", 4, "dev.en")
    rows = [row.split("\t") for row in done.stdout.decode().splitlines()]
    sources = (shop.folder / "dev.en").read_text(encoding="utf-8").splitlines()
    given = "".join(sources[int(id) - 1] + "\n" for id, _, _ in rows)
    (shop.folder / "nbest.de").write_text("".join(f"{row[2]}\n" for row in rows), encoding="utf-8")
    found = score("words.run", "--tgt", "nbest.de", stdin=given.encode())
    expected = [float(row[1]) for row in rows]
    assert [log_p / n**0.6 for log_p, n in found] == pytest.approx(expected, abs=5e-4)
    assert len({row[2] for row in rows}) > 3


def test_one_model_twice_is_that_model(score):
    once = score("bitran", "dev.jsonl")
    assert score("bitran bitran", "dev.jsonl") == once
    assert once != score("bitran vanilla", "dev.jsonl") != score("vanilla", "dev.jsonl")


def test_int8_is_near(score):
    exact, near = (
        score("vanilla", "dev.jsonl"),
        score("vanilla", "--precision", "int8", "dev.jsonl"),
    )
    assert near != exact
    for (log_prob, length), (other, _) in zip(exact, near, strict=True):
        assert other == pytest.approx(log_prob, abs=0.3 * length)


# --- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("models", ["vanilla", "bitran", "gcn"])
def test_batches_windows_and_processes_change_nothing(score, models):
    together = score(models, "train.jsonl")
    assert len(set(together)) > 30
    for options in (("--batch-size", 1), ("--batch-tokens", 60, "--window", 7), ("-j", 2)):
        for one, other in zip(score(models, *options, "train.jsonl"), together, strict=True):
            assert one == pytest.approx(other, abs=5e-4)


def test_text_trees_and_records_agree(shop, score):
    spm, tgt = ("--spm", "spm.model"), ("--tgt", "dev.de")
    shop("featurize", *spm, *tgt, "dev.en.conllu", "-o", "pieces.jsonl", status=0)
    of_records = score("vanilla", "pieces.jsonl")
    assert score("vanilla", *tgt, "dev.en") == of_records
    assert score("vanilla", *tgt, "dev.en.conllu") == of_records
    bare = [{"src": one["src"], "tgt": one["tgt"]} for one in shop.records("pieces.jsonl")]
    assert score("vanilla", shop.write("bare.jsonl", bare)) == of_records
    wrong = [{**one, "tgt": "x", "tgt_pieces": ["x"]} for one in bare]
    assert score("vanilla", *tgt, shop.write("wrong.jsonl", wrong)) == of_records


def test_each_line_has_its_line(shop):
    """Empty sides, failed records and long pairs stay in their places, and are counted."""
    good, *_ = shop.records("dev.jsonl")
    del good["id"]
    source = {key: good[key] for key in SOURCE_FIELDS}
    given = [
        good,
        {"src": ""},
        {"src": "", "tgt": ""},
        {"src": "", "tgt": "Ein Hund."},
        {**source, "tgt_pieces": []},
        {**good, "status": "failed", "reason": "no tree"},
        {**source, "status": "failed"},
        {**good, "tgt_pieces": good["tgt_pieces"] * 60},
        {**good, "tgt_pieces": ["▁中"]},
        {**good, "pieces": [*good["pieces"][:-1], "▁中"]},
    ]
    shop.write("mixed.jsonl", given)
    options = ("-m", "vanilla", "--max-pieces", 999, "mixed.jsonl")
    done = shop("likelihood", *options, status=0)
    n = len(good["tgt_pieces"])
    assert n * 60 > 999
    found = figures(done.stdout)
    lengths = [n + 1, 1, 1, None, 1, n + 1, 0, n * 60 + 1, 2, n + 1]
    lengths[3] = found[3][1]  # a text, which the test does not cut into pieces
    assert [length for _, length in found] == lengths
    assert lengths[3] > 2
    is_scored = [not math.isnan(log_prob) for log_prob, _ in found]
    assert is_scored == [True, True, True, False, True, True, False, False, True, True]
    assert found[1:3] == [(0.0, 1), (0.0, 1)]
    assert found[0] == found[5] != found[9]  # vanilla reads no tree
    assert found[4][0] < 0
    for message in (
        b"1 of 10 segments with a target but an empty source: not scored",
        b"1 of 10 segments failed: scored without a tree",
        b"1 of 10 segments failed, without a target: not scored",
        b"1 of 10 segments of more than 999 pieces: not scored",
        b"1 of 10 segments with target pieces that the vocabulary lacks: scored as <unk>",
        b"1 of 10 segments with source pieces that the vocabulary lacks: read as <unk>",
    ):
        assert message in done.stderr
    as_json = shop("likelihood", *options, "--format", "jsonl", status=0).stdout
    rows = [json.loads(line) for line in as_json.splitlines()]
    assert [row["id"] for row in rows] == [str(number) for number in range(1, 11)]
    assert [(row["log_prob"], row["length"]) for row in rows] == [
        (None if math.isnan(log_prob) else log_prob, length) for log_prob, length in found
    ]
    assert all(row.items() >= one.items() for row, one in zip(rows, given, strict=True))


def test_lines_of_trees_without_a_tree(shop, score):
    good, *_ = shop.records("dev.jsonl")
    source = {key: good[key] for key in SOURCE_FIELDS}
    failed = {**source, "status": "failed", "reason": "target: not projective"}
    given = [good, {"src": ""}, {**source, "transitions": []}, failed, good]
    found = score("gcn", shop.write("mixed.trees.jsonl", given))
    assert [math.isnan(log_prob) for log_prob, _ in found] == [False, False, True, True, False]
    assert (found[0], found[1]) == (found[4], (0.0, 1))


def test_a_failed_record_without_source_and_target_has_no_probability(shop, score):
    lost = {"src": "", "status": "failed", "reason": "two roots"}
    found = score("gcn", shop.write("lost.jsonl", [lost, {"src": ""}]))
    assert [math.isnan(log_prob) for log_prob, _ in found] == [True, False]


def test_strict_ends_at_the_first_failure_after_whole_lines(shop):
    good, *_ = shop.records("dev.jsonl")
    shop.write("failed.jsonl", [good, {**good, "status": "failed", "reason": "why"}, good])
    done = shop("likelihood", "-m", "vanilla", "--strict", "failed.jsonl", status=65)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr.endswith(b"synmt likelihood: failed.jsonl:2: why\n")


def test_a_line_is_scored_while_the_pipe_waits(shop):
    settings = SearchSettings()
    folder = str(shop.folder / "vanilla")
    job = LikelihoodJob([folder], "best", Wanted("cpu", "torch"), settings, jobs=1, threads=0)
    progress = SimpleNamespace(taken=iter, finished=iter, tick=lambda n, of: None)
    output, input = os.pipe()
    with open(input, "wb", buffering=0) as writer:
        given = ending_at_failures(
            job.reader("", ahead=1).read([f"/dev/fd/{output}"]), strict=False
        )
        results = job.scored(given, 1, print, progress, waited=float)
        for text in ("The dog sleeps.", "A cat sees the dog."):
            writer.write(f'{{"src":"{text}","tgt":"x"}}\n'.encode())
            ((record, found),) = next(results)  # the pipe is open, and empty
            assert record.src == text
            assert found.log_prob < 0
    assert list(results) == []
    os.close(output)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "options", "stdin", "status", "message"),
    [
        ("vanilla", (), b"A dog.\n", 65, b"<stdin>:1: no target; give --tgt FILE, or "),
        ("vanilla", ("--tgt", "one"), b"a\nb\n", 65, b"one: 1 line, but the source has 2"),
        ("vanilla", ("--tgt", "one"), b"", 65, b"one: 1 line, but the source has 0"),
        ("vanilla", ("--tgt", "bad"), b"a\nb\n", 65, b"bad:2: invalid UTF-8 at byte 1"),
        ("vanilla", ("--tgt", "absent"), b"a\n", 66, b"cannot read absent"),
        ("vanilla", ("--tgt", "-"), b"", 2, b"only one input can be stdin"),
        ("gcn", ("--tgt", "one"), b"a\n", 78, b"gcn writes trees, and --tgt is text"),
        ("gcn", (), b'{"src":"a","tgt":"b"}\n', 65, b"<stdin>:1: no transitions; make records"),
        ("vanilla gcn", (), EMPTY, 78, b"all of an ensemble write trees, or none"),
        ("vanilla", (), b'{"src":"a","tgt":"b","pieces":["<PA>"]}\n', 65, b"asks for a parse"),
        ("vanilla", ("--checkpoint", "step-9"), EMPTY, 66, b"; it has best"),
        ("vanilla", ("--precision", "bf16", "--device", "cpu"), EMPTY, 2, b"is for a GPU"),
    ],
)
def test_what_cannot_be_scored_is_refused(shop, models, options, stdin, status, message):
    (shop.folder / "one").write_bytes(b"x\n")
    (shop.folder / "bad").write_bytes(b"x\n\xff\n")
    runs = [word for model in models.split() for word in ("-m", model)]
    done = shop("likelihood", *runs, *options, stdin=stdin, status=status)
    assert message in done.stderr
    assert done.stdout.count(b"\n") <= 1


def test_pieces_of_another_vocabulary_are_made_anew(shop):
    stdin = b'{"src":"a","tgt_pieces":["b"],"vocab":"c"}\n'
    done = shop("likelihood", "-m", "vanilla", stdin=stdin, status=0)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == b""


def test_transitions_have_to_be_a_tree_of_the_vocabulary(shop):
    good, *_ = shop.records("dev.jsonl")
    for change, status, message in (
        (good["transitions"][:-1], 65, b"bad.jsonl:2: transitions: "),
        ([*good["transitions"], "LEFT-ARC:absent"], 78, b"bad.jsonl:2: "),
    ):
        shop.write("bad.jsonl", [good, {**good, "transitions": change}])
        done = shop("likelihood", "-m", "gcn", "bad.jsonl", status=status)
        assert message in done.stderr
        assert done.stdout.count(b"\n") == 1


def test_pieces_of_another_vocabulary_are_refused(shop):
    good, *_ = shop.records("dev.jsonl")
    shop.write("other.jsonl", [good, {**good, "vocab": "0" * 16}])
    for model in ("vanilla", "gcn"):
        done = shop("likelihood", "-m", model, "other.jsonl", status=78)
        assert b"other.jsonl:2: pieces of vocabulary 0000000000000000, but the model's" in (
            done.stderr
        )


# --- documents -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_on_contrastive_sets_runs_as_printed(example_folder, shell):
    """The accuracy is counted again; a model that ranks its own list again keeps its order."""
    page = (ROOT / "docs" / "contrastive.md").read_text(encoding="utf-8")
    accuracy, rerank, *others = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert not others
    lines = (example_folder / "test.de").read_bytes()
    (example_folder / "wrong.de").write_bytes(lines.replace(b" der ", b" die "))
    done = shell(accuracy, example_folder)
    assert done.returncode == 0, done.stderr.decode()
    right, wrong = (
        [float(row.split(b"\t")[0]) for row in (example_folder / name).read_bytes().splitlines()]
        for name in ("right.tsv", "wrong.tsv")
    )
    n_right = sum(a > b for a, b in zip(right, wrong, strict=True))
    assert 0 < n_right < len(right) == 16
    assert done.stdout.decode().split("\n")[0] == f"{n_right / 16:.6g}"
    done = shell(rerank, example_folder)
    assert done.returncode == 0, done.stderr.decode()
    nbest = [row.split(b"\t") for row in (example_folder / "nbest.tsv").read_bytes().splitlines()]
    scores = [row.split(b"\t") for row in (example_folder / "scores.tsv").read_bytes().splitlines()]
    best = {}
    for (id, _, text), (log_prob, length) in zip(nbest, scores, strict=True):
        best.setdefault(id, []).append((float(log_prob) / int(length) ** 0.6, text))
    expected = [max(own, key=lambda one: one[0])[1] for own in best.values()]
    assert (example_folder / "reranked.de").read_bytes().splitlines() == expected
    assert len(expected) == 16
