"""Runs with random weights, records for them, and trees, for the tests of analyses."""

from __future__ import annotations

import io

import torch

from support.models import make, small
from synmt_cli.core.analysis.opened_run import OpenedRun
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.unseen_labels import UnseenLabels
from synmt_cli.core.text.vocabulary import EOS, Vocabularies
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.formats import conllu
from synmt_cli.formats.record import Record
from synmt_cli.io.reading import Source

SIZE = small()


class Letters:
    """A vocabulary of the pieces d to z, ids 4 and up."""

    fingerprint = "letters"

    def ids(self, pieces):
        return [ord(piece) - ord("d") + 4 for piece in pieces]

    def source_ids(self, pieces):
        return [*self.ids(pieces), EOS]


def opened(variant="vanilla", n=30):
    one = plan(variant)
    setting = StackSpec(SIZE, 2)
    model = make(SIZE, one.encoder(setting, {}), one.decoder(setting, {}), n)
    needs = sorted({name for m in model.encoder.modifiers for name in m.needs})
    encoding, vocabularies = Encoding(needs, Labels()), Vocabularies(Letters(), Letters())
    cpu = torch.device("cpu")
    given = model, vocabularies, encoding, lambda r: r, None, cpu, UnseenLabels(encoding)
    return OpenedRun(variant, variant, *given)


def record(id, pieces, target=(), **fields):
    n = len(pieces)
    tree = {"heads": [-1, *range(n - 1)], "deprels": ["x"] * n, "piece_word": list(range(n))}
    return Record(id, "".join(pieces), pieces=list(pieces), tgt_pieces=list(target), **tree)


RECORDS = [record("1", "def", "gh"), record("2", "g", "defg"), record("3", "hedge", "")]


def sentence(*words):
    """A sentence of words that are given as `FORM UPOS HEAD DEPREL FEATS [MISC]`."""
    rows = []
    for number, word in enumerate(words, 1):
        form, upos, head, deprel, feats, misc = (*word.split(), "_", "_")[:6]
        rows.append(f"{number}\t{form}\t_\t{upos}\t_\t{feats}\t{head}\t{deprel}\t_\t{misc}\n")
    (found,) = conllu.read(Source("x", io.BytesIO("".join(rows).encode())))
    return found
