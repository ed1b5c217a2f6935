"""A folder in which models that write trees are trained and used, and a reader of what they write.

The models have random weights: one update that moves every weight by 0.1. What they write is
nonsense, but must still be a tree. It is read without the project's own reader.
"""

from __future__ import annotations

import json
import shutil

DATA = (
    "synth -n 60 --seed 1 --mix 0 --depth 0 --phenomena plain,particle --unique"
    " --out-template train.{ext}",
    "synth -n 5 --seed 2 --mix 0 --depth 0 --phenomena plain,particle --out-template dev.{ext}",
    "linearize --format symbols --glue train.de.conllu -o symbols",
    "linearize --format symbols --glue --split-transitions train.de.conllu -o split.symbols",
    "vocab train --size 280 --symbols symbols train.en train.de -o spm.model",
    "vocab train --size 280 --symbols split.symbols train.en train.de -o split.model",
    "vocab train --size 250 train.en train.de -o plain.model",
)
TREES = ("linearized", "parent", "gcn", "pascal+parent", "gps+gcn", "bitran+linearized")
SIZES = (
    *("--preset", "tiny", "--threads", 1, "--max-steps", 1),
    *("--set", "model.d_model=16", "--set", "model.d_ff=32", "--set", "model.n_heads=2"),
    *("--set", "model.encoder_layers=1", "--set", "model.decoder_layers=2"),
)
RANDOM = ("training.lr=0.1", "training.initial_lr=0.1", "training.warmup=1")
EMPTY = b'{"src":""}\n'
SOURCE_FIELDS = (
    "src",
    "words",
    "spans",
    "heads",
    "deprels",
    "upos",
    "pieces",
    "piece_word",
    "vocab",
)


class Workshop:
    """A folder with data, and the program in it."""

    def __init__(self, folder, forked):
        self.folder = folder
        self._forked = forked
        for line in DATA:
            self(*line.split(), status=0)
        for name in ("train", "dev"):
            self.featurize(name, "spm.model", f"{name}.jsonl")

    def __call__(self, *arguments, stdin=b"", status=None):
        done = self._forked(*arguments, stdin=stdin, cwd=self.folder)
        assert status is None or done.returncode == status, done.stderr.decode()
        return done

    def featurize(self, name, vocabulary, output, *options):
        glue = ("--glue", "--multiword", "token", *options)
        trees = ("--tgt-conllu", f"{name}.de.conllu", f"{name}.en.conllu", "-o", output)
        self("featurize", "--spm", vocabulary, *glue, *trees, status=0)

    def records(self, name):
        return [json.loads(line) for line in (self.folder / name).read_bytes().splitlines()]

    def write(self, name, records):
        lines = [json.dumps(record).encode() + b"\n" for record in records]
        (self.folder / name).write_bytes(b"".join(lines))
        return name

    def train(
        self, variant, *settings, run=None, train="train.jsonl", options=(), keep=False, status=0
    ):
        run = run or variant
        if not keep:
            shutil.rmtree(self.folder / run, ignore_errors=True)
        chosen = [word for setting in (*RANDOM, *settings) for word in ("--set", setting)]
        what = ("--variant", variant, "--train", train, "--run", run)
        return self("train", *what, *SIZES, *chosen, *options, status=status)

    def translate(self, models, *options, stdin=b"", status=0):
        runs = [word for model in models.split() for word in ("-m", model)]
        return self("translate", *runs, "--threads", 1, *options, stdin=stdin, status=status)


def blocks(conllu):
    """(comments, rows) of each sentence of CoNLL-U bytes."""
    assert conllu.endswith(b"\n\n")
    made = []
    for block in conllu.decode()[:-2].split("\n\n"):
        lines = block.split("\n")
        comments = [line for line in lines if line.startswith("# ")]
        rows = [line.split("\t") for line in lines[len(comments) :]]
        assert all(len(row) == 10 for row in rows)
        assert [row[0] for row in rows] == [str(n) for n in range(1, len(rows) + 1)]
        made.append((dict(line[2:].split(" = ", 1) for line in comments), rows))
    return made


def ancestors(heads, word):
    """The words above `word`, counted from 1, up to the root."""
    above = []
    while heads[word - 1]:
        word = heads[word - 1]
        assert word not in above, "a cycle"
        above.append(word)
    return above


def is_projective_tree(rows):
    heads = [int(row[6]) for row in rows]
    labels = [row[7] for row in rows]
    above = [ancestors(heads, word) for word in range(1, len(heads) + 1)]
    arcs = [(head, word) for word, head in enumerate(heads, 1) if head]
    return (
        heads.count(0) == 1
        and all((label == "root") == (head == 0) for head, label in zip(heads, labels, strict=True))
        and all(
            head in above[between - 1]
            for head, word in arcs
            for between in range(min(head, word) + 1, max(head, word))
        )
    )


def text(block):
    """The words with their spaces; "" for an empty line."""
    comments, rows = block
    if comments.get("synmt_status") == "empty":
        return ""
    glued = [row[1] + ("" if row[9] == "SpaceAfter=No" else " ") for row in rows]
    return "".join(glued).rstrip(" ")


def check_trees(conllu, n):
    """Checks that each of n lines has one projective tree. Returns the lines of text."""
    sentences = blocks(conllu)
    assert len(sentences) == n
    assert all(is_projective_tree(rows) for _, rows in sentences)
    lines = [text(sentence) for sentence in sentences]
    assert lines == [comments["text"] for comments, _ in sentences]
    return lines


def is_arc(token):
    return token.startswith(("LEFT-ARC", "RIGHT-ARC"))
