"""`synmt train` of decoders of trees: their parameters, what resumes, and records refused."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil

import pytest
from sacrebleu import corpus_bleu
from safetensors.torch import load_file
from support.tree_workshop import check_trees, is_arc

# --- models --------------------------------------------------------------------------------------


def parameters(shop, variant, *settings):
    said = shop.train(variant, *settings, run="counted").stderr.decode()
    return int(re.search(r"([0-9,]+) parameters", said)[1].replace(",", ""))


def test_the_parameters_are_those_of_the_equations(shop):
    d, layers = 16, 2
    symbols = (shop.folder / "symbols").read_text().split()
    labels = {symbol.split(":", 1)[1] for symbol in symbols if ":" in symbol}
    plain = parameters(shop, "linearized")
    added = layers * 3 * d * d  # W of self, left, right
    gates = layers * 3 * d
    assert parameters(shop, "parent") == plain == parameters(shop, "bitran")
    ungated = parameters(shop, "gcn", "gcn.labels=false", "gcn.gates=false")
    assert ungated == plain + added
    assert parameters(shop, "gcn", "gcn.labels=false") == plain + added + gates
    biases = layers * (d + 1) * (2 * len(labels) + 1)
    assert parameters(shop, "gcn") == plain + added + gates + biases
    shared = layers * (d + 1) * (len(labels) + 1)
    assert parameters(shop, "gcn", "gcn.label_bias=shared") == plain + added + gates + shared


def test_pieces_and_transitions_are_counted_apart(shop):
    lines = (shop.folder / "train.jsonl").read_text(encoding="utf-8").splitlines()
    targets = [json.loads(line)["transitions"] for line in lines]
    arcs = sum(is_arc(token) for tokens in targets for token in tokens)
    pieces = sum(map(len, targets)) + len(targets) - arcs  # with an end for each
    told = shop.train("linearized", run="none", options=("--dry-run",)).stderr.decode()
    assert f" training pairs, {pieces + arcs:,} target tokens ({pieces:,} pieces, " in told
    assert f"({pieces:,} pieces, {arcs:,} transitions)" in told


@pytest.mark.parametrize(
    "setting", ["labels=false", "gates=false", "label_bias=shared", "layers=1"]
)
def test_the_ablations_are_models_of_their_own(shop, source, setting):
    nll = []
    for settings in ((), (f"gcn.{setting}",)):
        shop.train("gcn", *settings, run="ablated", options=("--dev", "dev.jsonl"))
        events = shop.records("ablated/metrics.jsonl")
        nll.append(next(event["nll"] for event in events if event["event"] == "dev"))
    assert abs(nll[0] - nll[1]) > 1e-4
    options = ("--max-output-len", 9, "--format", "conllu")
    check_trees(shop.translate("ablated", *options, stdin=source).stdout, 7)


def test_bidirection_needs_a_second_layer_to_matter(shop, source):
    """The row that predicts sees the same tokens either way; only rows below it see others."""
    for layers, same in ((1, True), (2, False)):
        found = []
        for variant in ("vanilla", "bitran"):
            shop.train(variant, f"model.decoder_layers={layers}", "model.dropout=0", run="layers")
            options = ("--max-output-len", 12, "--nbest", 4, "--format", "tsv")
            out = shop.translate("layers", *options, stdin=source).stdout.decode()
            rows = [line.split("\t") for line in out.splitlines()]
            found.append(([row[2:] for row in rows], [float(row[1]) for row in rows]))
        (texts, scores), (other_texts, other_scores) = found
        assert (texts == other_texts and scores == pytest.approx(other_scores, abs=1e-3)) == same


def test_training_resumes_bit_for_bit(shop):
    for run, steps in (("whole", (4,)), ("halves", (2, 4))):
        shutil.rmtree(shop.folder / run, ignore_errors=True)
        for n in steps:
            options = ("--max-steps", n)
            shop.train(
                "parent+gcn", "training.prefix_share=0.5", run=run, options=options, keep=True
            )
    whole, halves = (weights(shop, run) for run in ("whole", "halves"))
    assert all(whole[name].equal(halves[name]) for name in whole)


def test_figures_of_words_and_arcs_are_apart(shop):
    options = ("--dev", "dev.jsonl")
    done = shop.train("linearized", "training.metric=bleu", run="apart", options=options)
    events = shop.records("apart/metrics.jsonl")
    found = next(event for event in events if event["event"] == "dev")
    targets = [record["transitions"] for record in shop.records("dev.jsonl")]
    n_arcs = sum(map(is_arc, itertools.chain(*targets)))
    words, arcs, every = (found[name] for name in ("words", "arcs", "all"))
    assert arcs["tokens"] == n_arcs
    assert words["tokens"] == sum(map(len, targets)) + len(targets) - n_arcs
    for one in (words, arcs, every):
        assert one["perplexity"] == pytest.approx(math.exp(one["nll"]))
        assert one["nll_per_sentence"] * len(targets) == pytest.approx(one["nll"] * one["tokens"])
    both = words["nll_per_sentence"] + arcs["nll_per_sentence"]
    assert every["nll_per_sentence"] == pytest.approx(both)
    assert found["nll"] == every["nll"]
    n_right = sum(one["accuracy"] * one["tokens"] for one in (words, arcs))
    assert every["accuracy"] * every["tokens"] == pytest.approx(n_right)
    line = f"(words {words['perplexity']:.2f}, arcs {arcs['perplexity']:.2f}), BLEU"
    assert line in done.stderr.decode()
    assert f"({found['closed']} trees closed)" in done.stderr.decode()
    shop.train("vanilla", "training.metric=bleu", run="apart", options=options)
    events = shop.records("apart/metrics.jsonl")
    plain = next(event for event in events if event["event"] == "dev")
    assert not {"words", "arcs", "closed"} & plain.keys()
    assert plain["all"]["nll"] == plain["nll"]


@pytest.mark.long
def test_bleu_of_dev_is_that_of_greedy_translations(shop):
    """It is cased and of words, or of characters with training.tokenize=char."""
    settings = ("metric=bleu", "lr=0.02", "initial_lr=0", "warmup=20", "validate_every=200")
    options = ("--max-steps", 200, "--dev", "train.jsonl")
    settings = [f"training.{setting}" for setting in settings]
    shop.train("vanilla", *settings, run="greedy", options=options)
    (found,) = [event for event in shop.records("greedy/metrics.jsonl") if event["event"] == "dev"]
    hypotheses = shop.translate("greedy", "--beam", 1, "train.jsonl").stdout.decode().splitlines()
    references = [record["tgt"] for record in shop.records("train.jsonl")]
    assert found["value"] == pytest.approx(corpus_bleu(hypotheses, [references]).score)
    assert corpus_bleu(hypotheses, [references], lowercase=True).score > found["value"] > 1
    shop.train("vanilla", *settings, "training.tokenize=char", run="characters", options=options)
    events = shop.records("characters/metrics.jsonl")
    (of_characters,) = [event["value"] for event in events if event["event"] == "dev"]
    expected = corpus_bleu(hypotheses, [references], tokenize="char").score
    assert of_characters == pytest.approx(expected)
    assert of_characters > found["value"] + 1


def test_the_tokenizer_of_validations_is_part_of_a_run(shop):
    """It decides which model is the best. A warning before training names an unfit one."""
    options = ("--max-steps", 1, "--dev", "dev.jsonl")
    shop.train("vanilla", "training.tokenize=zh", run="zh", options=options)
    assert 'tokenize = "zh"\n' in (shop.folder / "zh/config.toml").read_text()
    again = {"run": "zh", "options": options, "keep": True}
    done = shop.train("vanilla", "training.tokenize=char", **again, status=78)
    assert b"zh was trained with training.tokenize = 'zh', not 'char'" in done.stderr
    chinese = [{**one, "tgt": "一个男人在街上走路。"} for one in shop.records("dev.jsonl")]
    options = ("--max-steps", 1, "--dev", shop.write("zh.jsonl", chinese), "--dry-run")
    told = {
        tokenize: shop.train("vanilla", f"training.tokenize={tokenize}", run="x", options=options)
        for tokenize in ("13a", "zh")
    }
    warning = b"warning: the targets of zh.jsonl have Han characters without spaces, whose clauses "
    assert warning in told["13a"].stderr
    assert b"takes for words; use --set training.tokenize=zh\n" in told["13a"].stderr
    assert b"Han characters" not in told["zh"].stderr


def test_a_tokenizer_that_is_not_there_is_missed_before_training(shop, monkeypatch):
    monkeypatch.setenv("HOME", str(shop.folder))
    options = ("--max-steps", 1, "--dev", "dev.jsonl")
    settings = "training.tokenize=flores200"
    done = shop.train("vanilla", settings, run="new", options=options, status=69)
    assert b"tokenizer flores200 needs a model: download " in done.stderr
    assert not (shop.folder / "new").exists()
    shop.train("vanilla", settings, "training.metric=loss", run="new", options=options)


def test_the_weight_of_arcs_counts_where_dev_is_measured(shop):
    """The model is the same: arcs gain log 1/w, less what they add to the sum over all tokens."""
    found = {}
    for weight in (1, 0.3):
        settings = (
            "training.lr=0",
            "training.initial_lr=0",
            f"training.transition_weight={weight}",
        )
        shop.train("linearized", *settings, run="weighed", options=("--dev", "dev.jsonl"))
        events = shop.records("weighed/metrics.jsonl")
        found[weight] = next(event for event in events if event["event"] == "dev")
    gain = found[1]["arcs"]["nll"] - found[0.3]["arcs"]["nll"]
    loss = found[0.3]["words"]["nll"] - found[1]["words"]["nll"]
    assert gain > 0 < loss
    assert gain + loss == pytest.approx(-math.log(0.3), abs=0.05)  # the sums are nearly equal


def weights(shop, run):
    return load_file(shop.folder / run / "checkpoints/step-4/weights.safetensors")


# --- what is refused -----------------------------------------------------------------------------


def without_transitions(record):
    del record["transitions"]


def with_an_unknown_arc(record):
    tokens = record["transitions"]
    tokens[next(i for i, token in enumerate(tokens) if is_arc(token))] = "LEFT-ARC:nothing"


def with_an_arc_too_early(record):
    record["transitions"].insert(1, "LEFT-ARC:det")


def with_words_left(record):
    record["transitions"].pop()


def with_an_arc_too_many(record):
    record["transitions"].append(record["transitions"][-1])


@pytest.mark.parametrize("side", ["train", "dev"])
@pytest.mark.parametrize(
    "damage",
    [
        without_transitions,
        with_an_arc_too_early,
        with_an_arc_too_many,
        with_words_left,
        with_an_unknown_arc,
    ],
)
def test_records_without_a_tree_are_refused(shop, damage, side):
    records = shop.records("dev.jsonl")
    damage(records[2])
    name = shop.write("damaged.jsonl", records)
    given = {"train": name} if side == "train" else {"options": ("--dev", name)}
    for variant in ("linearized", "parent", "gcn"):
        done = shop.train(variant, run="refused", status=None, **given)
        assert done.returncode in (65, 78), done.stderr
        assert done.stderr.splitlines()[-1].startswith(b"synmt train: damaged.jsonl:3: ")
        assert not (shop.folder / "refused" / "model.safetensors").exists()


def test_a_vocabulary_without_arcs_is_refused(shop):
    shop.featurize("train", "plain.model", "plain.jsonl")
    for variant in ("linearized", "parent", "gcn"):
        done = shop.train(variant, run="refused", train="plain.jsonl", status=78)
        assert b"synmt linearize --format symbols" in done.stderr.splitlines()[-1]
    shop.train("bitran", run="refused", train="plain.jsonl")
