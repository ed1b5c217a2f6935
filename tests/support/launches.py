"""Pairs with trees on both sides, and what one update of a variant costs on a GPU (pretend.py).

Counts depend only on the lengths and depths of a batch: 64 sentences of 10 to 24 pieces, with paths
of up to 8 labels (like 64 sentences of about 20 words, neighbours by length, in English UD EWT).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from support import pretend
from synmt_cli.core import variants
from synmt_cli.core.data.batch import to_device
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.decoding import search as searching
from synmt_cli.core.decoding.hypothesis import LengthLimit, Rules
from synmt_cli.core.decoding.scorers.scorer import Scorer
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import EOS
from synmt_cli.core.training.gradient import backward
from synmt_cli.core.transitions.grammar import FEATURES, OTHER, Grammar
from synmt_cli.core.trees.arc_standard import Move, oracle
from synmt_cli.core.trees.shapes import random_projective_tree
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.formats.record import Record
from synmt_cli.formats.transitions import LEFT, RIGHT


class Numbers:
    """A vocabulary whose texts are its ids."""

    fingerprint = "f"

    def decode(self, ids):
        return " ".join(map(str, ids))

    def ids(self, pieces):
        return [4 + len(piece) for piece in pieces]

    def source_ids(self, pieces):
        return [*self.ids(pieces), EOS]


N_PAIRS, LONGEST, DEEPEST = 64, 23, 7
LABELS = [f"l{i}" for i in range(37)]
N_IDS = 200
FIRST_ARC = N_IDS - 2 * len(LABELS)
SIZE = Size(d_model=16, d_ff=16, n_heads=4)  # 6 + 6 layers
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {  # row of the table: variant, options
    "vanilla": ("vanilla", {}),
    "tags": ("tags", {}),
    "struct-abs": ("struct-abs", {}),
    "sisa": ("sisa", {}),
    "pascal": ("pascal", {}),
    "pascal, all layers": ("pascal", {"pascal": {"heads": [2] * 6}}),
    "gps": ("gps", {}),
    "gps, all layers": ("gps", {"gps": {"layer": "all"}}),
    "dep": ("dep", {}),
    "struct-rel": ("struct-rel", {}),
    "rel, encoder": ("rel", {"rel": {"stack": "encoder"}}),
    "rel": ("rel", {}),
    "dep+rel": ("dep+rel", {}),
    "bitran": ("bitran", {}),
    "linearized": ("linearized", {}),
    "parent": ("parent", {}),
    "gcn": ("gcn", {}),
}


def corpus(n: int = N_PAIRS, trees: bool = False) -> Corpus:
    """Pairs with every feature of the source. trees: targets are transitions, else pieces."""
    dice = random.Random(1)
    encoding = Encoding(sorted(_features()), Labels(LABELS))
    records = [record(dice) for _ in range(n)]
    source = [[*(dice.randrange(EOS + 1, FIRST_ARC) for _ in r.pieces or ()), EOS] for r in records]
    features = encoding.ragged([encoding.values(record) for record in records])
    target: list[list[int]] = []
    known: dict[str, list[list[int]]] = {name: [] for name in FEATURES}
    rules = grammar()
    for ids in source:
        length = max(3, len(ids) + dice.randrange(-3, 4))
        if trees:
            tokens = _transitions(length // 2, dice)
            for name, values in rules.features(tokens).items():
                known[name].append(values)
            target.append([_id(token, dice) for token in tokens])
        else:
            target.append([dice.randrange(EOS + 1, FIRST_ARC) for _ in range(length)])
    return Corpus(
        Ragged.of(source, np.int64),
        Ragged.of(target, np.int64),
        features,
        {name: Ragged.of(rows, np.int64) for name, rows in known.items()} if trees else {},
        encoding,
        [" ".join(map(str, ids)) for ids in target],
        Counter(),
    )


def _features() -> set[str]:
    spec = StackSpec(SIZE, SIZE.encoder_layers, len(LABELS))
    named = {name for name, _ in SETTINGS.values()}
    return {f for name in named for m in variants.plan(name).encoder(spec, {}) for f in m.needs}


def record(dice: random.Random) -> Record:
    """A sentence whose words are one to three pieces, and whose depths are at most DEEPEST."""
    n = dice.randrange(9, LONGEST + 1)
    piece_word = [0]
    while len(piece_word) < n:
        piece_word.append(piece_word[-1] + (dice.random() < 0.8))
    heads, depths = [-1], [0]
    for word in range(1, piece_word[-1] + 1):
        head = word - 1 if word <= DEEPEST else dice.randrange(word)
        while depths[head] >= DEEPEST:
            head = dice.randrange(word)
        heads.append(head)
        depths.append(depths[head] + 1)
    pieces = ["x"] * n
    deprels = [dice.choice(LABELS) for _ in heads]
    given = {"heads": heads, "deprels": deprels, "sents": [0], "piece_word": piece_word}
    return Record("1", "x", words=["x"] * len(heads), pieces=pieces, **given)


def _transitions(n_words: int, dice: random.Random) -> list[str]:
    """The transitions of a random projective tree over words of one or two pieces."""
    tokens = []
    for move, _ in oracle(random_projective_tree(max(1, n_words), dice.random)) or ():
        if move == Move.BEGIN:
            tokens += ["▁w", *(["w"] if dice.random() < 0.15 else [])]
        else:
            tokens.append(f"{LEFT if move == Move.LEFT else RIGHT}:{dice.choice(LABELS)}")
    return tokens


def _id(token: str, dice: random.Random) -> int:
    """The id of an arc, or a random id for a piece."""
    direction, _, label = token.partition(":")
    if not label:
        return dice.randrange(EOS + 1, FIRST_ARC)
    return FIRST_ARC + len(LABELS) * (direction == RIGHT) + LABELS.index(label)


def build(variant: str, options: Mapping[str, Any], size: Size = SIZE) -> Transformer:
    """A model in training mode, on the CPU."""
    torch.manual_seed(1)
    one = variants.plan(variant)
    spec = StackSpec(size, size.encoder_layers, len(LABELS))
    both = one.encoder(spec, options), one.decoder(spec, options)
    rules = grammar() if one.transitions else None
    return Transformer(size, N_IDS, N_IDS, *both, one.rereads, rules).train()


def grammar() -> Grammar:
    """The moves and labels of all ids."""
    moves = np.full(N_IDS, OTHER, np.int64)
    moves[EOS], moves[EOS + 1 : FIRST_ARC] = Move.FINISH, Move.BEGIN
    moves[FIRST_ARC:] = np.repeat([Move.LEFT, Move.RIGHT], len(LABELS))
    labels = np.zeros(N_IDS, np.int64)
    labels[FIRST_ARC:] = np.tile(np.arange(1, len(LABELS) + 1), 2)
    return Grammar(moves, labels, tuple(LABELS), False)


def update(setting: str) -> pretend.Counts:
    """Counts what one forward and one backward pass take, for a row of SETTINGS."""
    variant, options = SETTINGS[setting]
    model = build(variant, options).to(pretend.DEVICE)
    one = corpus(trees=variants.plan(variant).transitions)
    few, batch = (one.batch(np.arange(n)).to(pretend.DEVICE) for n in (2, len(one)))
    backward(model, few, 0.1, 1.0)  # so that what is made only once is not counted
    for parameter in model.parameters():
        parameter.grad = None
    with pretend.counted() as counts:
        backward(model, batch, 0.1, 1.0)
    return counts


@dataclass
class Searched:
    """What a search took. counts: of the whole search. n_steps: how many steps the model took.
    n_of_model: its launches, the encoder's included; the others are those of search itself.
    """

    counts: pretend.Counts
    n_steps: int
    n_of_model: int

    @property
    def share(self) -> float:
        """All launches, as a multiple of the model's."""
        return self.counts.n_launches / self.n_of_model


class Watched:
    """A scorer that counts its steps and the launches they take."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer, self.n_steps, self.n_launches = scorer, 0, 0

    def step(self, prefixes: Side, normalised: bool = True) -> Tensor:
        with pretend.counted() as counts:
            found = self._scorer.step(prefixes, normalised)
        self.n_steps, self.n_launches = self.n_steps + 1, self.n_launches + counts.n_launches
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)


def searched(setting: str, beam: int, n: int = N_PAIRS) -> Searched:
    """Counts what it takes to translate n sources with a row of SETTINGS."""
    variant, options = SETTINGS[setting]
    model = build(variant, options).to(pretend.DEVICE)
    pairs = corpus(n, variants.plan(variant).transitions)
    source = to_device(pairs.sources(np.arange(n)), pretend.DEVICE)
    made: list[Watched] = []

    def watched(*given: Any) -> Watched:
        with pretend.counted() as counts:
            made.append(Watched(scorer_of(*given)))
        made[-1].n_launches += counts.n_launches
        return made[-1]

    with pretend.counted() as encoding, torch.inference_mode():
        model.eval().encode(source)

    scorer_of, searching._scorer = searching._scorer, watched
    try:
        with pretend.counted() as counts:
            searching.search([model], source, Rules(beam=beam, longest=LengthLimit(1, 0)))
    finally:
        searching._scorer = scorer_of
    n_of_model = encoding.n_launches + sum(m.n_launches for m in made)
    return Searched(counts, sum(m.n_steps for m in made), n_of_model)
