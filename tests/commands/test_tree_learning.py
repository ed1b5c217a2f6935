"""Each decoder of trees learns to copy or translate words, with a fixed tree over them."""

from __future__ import annotations

import json
import random

import pytest

WORDS = ("ball", "cat", "dog", "egg", "fish", "goat", "hat", "ink")
GERMAN = ("Ball", "Katze", "Hund", "Ei", "Fisch", "Ziege", "Hut", "Tinte")
SETTINGS = (
    *("model.d_model=32", "model.d_ff=64", "model.n_heads=2", "model.dropout=0"),
    *("model.encoder_layers=1", "model.decoder_layers=2"),
    *("training.lr=0.006", "training.warmup=30", "training.metric=accuracy"),
)


def left(n):
    """Heads for words that depend on the one before them: arcs come among the words."""
    return range(n)


def right(n):
    """Heads for words that depend on the next one: all arcs come last."""
    return [*range(2, n + 1), 0]


def copied(words):
    return words


def translated(words):
    """The translation, word for word, from the last word to the first."""
    return [GERMAN[WORDS.index(word)] for word in reversed(words)]


def conllu(sentence, tree):
    rows = [f"# text = {' '.join(sentence)}\n"]
    for i, (word, head) in enumerate(zip(sentence, tree, strict=True), 1):
        label = "dep" if head else "root"
        rows.append(f"{i}\t{word}\t_\tX\t_\t_\t{head}\t{label}\t_\t_\n")
    return "".join(rows) + "\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("variant", "task", "shape", "updates"),
    [
        ("linearized", copied, right, 150),
        ("gcn", copied, right, 180),
        ("linearized", translated, left, 320),
        ("bitran", translated, right, 300),
        ("parent", translated, right, 240),
        ("gcn", translated, left, 240),
    ],
)
def test_a_task_is_learned_with_its_tree(forked, tmp_path, variant, task, shape, updates):
    def synmt(*arguments):
        done = forked(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    chance = random.Random(1)
    for name, n in (("train", 400), ("dev", 50)):
        drawn = [chance.choices(WORDS, k=chance.randint(2, 4)) for _ in range(n)]
        for side, made in (("src", drawn), ("tgt", [task(words) for words in drawn])):
            trees = "".join(conllu(words, shape(len(words))) for words in made)
            (tmp_path / f"{name}.{side}.conllu").write_text(trees)
            (tmp_path / f"{name}.{side}").write_text("".join(f"{' '.join(w)}\n" for w in made))
    synmt("linearize", "--format", "symbols", "train.tgt.conllu", "-o", "symbols")
    text, size = ("train.src", "train.tgt"), 60 if task is copied else 80
    synmt("vocab", "train", "--size", size, "--symbols", "symbols", *text, "-o", "spm.model")
    for name in ("train", "dev"):
        targets = ("--tgt-conllu", f"{name}.tgt.conllu", "-o", f"{name}.jsonl")
        synmt("featurize", "--spm", "spm.model", *targets, f"{name}.src.conllu")
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    data = ("--train", "train.jsonl", "--dev", "dev.jsonl", "--run", "run", "--threads", 1)
    length = ("--max-steps", updates)
    synmt("train", "--variant", variant, "--preset", "tiny", *data, *length, *settings)
    metrics = [
        json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_bytes().splitlines()
    ]
    assert metrics[-1]["value"] > 95

    written = synmt("translate", "-m", "run", "--threads", 1, "dev.jsonl").splitlines()
    right_ones = (tmp_path / "dev.tgt").read_bytes().splitlines()
    assert sum(map(bytes.__eq__, written, right_ones)) > 40
    if variant != "bitran":
        options = ("--format", "conllu", "--threads", 1, "-o", "written.conllu")
        synmt("translate", "-m", "run", *options, "dev.jsonl")
        blocks = (tmp_path / "written.conllu").read_text().split("\n\n")[:-1]
        assert sum(heads(block) == [*shape(len(heads(block)))] for block in blocks) > 45


def heads(block):
    rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
    return [int(row[6]) for row in rows]
