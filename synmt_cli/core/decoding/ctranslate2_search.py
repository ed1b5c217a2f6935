"""Search by CTranslate2, for models whose decoder is plain.

torch computes what modifiers change (run/exported/ctranslate2_model.py); its rows become the source
embeddings of a CTranslate2 model, one row for each position of each source, and CTranslate2 does
the rest. The model is written and quantized once in a process. For each block of sources it is
loaded again with another table, which takes as long as copying it; loading and encoding of a
block go on while CTranslate2 translates the one before.

The search is that of decoding/beam.py, for the part that both have:

    finished     the extensions by EOS among the K best; the K best others go on
    score        log P / length^lenpen, EOS counted
    done         when patience * K translations are finished; with lenpen = 0 and one translation
                 for each source, when the best extension is EOS, which is exact

Forbidden pieces do not keep their share of the probability: log P is larger by -log(1 - P(unk) -
P(pad) - P(bos)) for each token. A batch has one limit for all, so a source with a translation that
reaches the source's own limit is searched once more with that limit.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from synmt_cli.core.data.batch import to_device
from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.decoding.hypothesis import Hypothesis, Rules, limits
from synmt_cli.core.decoding.translator import SearchSettings
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.moving import moved
from synmt_cli.core.run.device import HALF
from synmt_cli.core.run.exported.ctranslate2_model import POSITIONS, CTranslate2Model, library
from synmt_cli.core.text.vocabulary import BOS, EOS, PAD
from synmt_cli.errors import Unavailable

# The compute types of --precision, on a CPU and on a GPU.
TYPES = {
    "fp32": ("float32", "float32"),
    "int8": ("int8", "int8_float16"),
    "bf16": ("bfloat16", "bfloat16"),
    "fp16": ("float16", "float16"),
}
TABLE_NUMBERS = 2**24  # about so many in a table: 64 MiB in single precision
BLOCKS = 4  # in a window, where encoding and search can go on at the same time
MARKS = 3  # tokens that a source may have besides its pieces: EOS and two task tags
TINY = 1e-30  # a length penalty that changes no score, but is not 0


def misfit(rules: SearchSettings, n_target: int) -> str:
    """The rule of a search that CTranslate2 cannot follow, or ""."""
    if rules.sampling is not None:
        return "sampling by a seed for each segment: leave --sample out"
    exact = rules.lenpen == 0 and rules.nbest == 1
    if rules.beam > 1 and math.isinf(rules.patience) and not exact:
        return "exact search: --patience 1 ends it when as many translations as --beam are finished"
    if rules.nbest > n_candidates(rules):
        return f"--nbest {rules.nbest} with --patience {rules.patience:g}"
    if 2 * rules.beam > n_target - 4:
        return f"--beam {rules.beam} with {n_target:,} target pieces"
    n_source = rules.max_pieces + MARKS
    if max(n_source, *limits([n_source], rules.longest)) > POSITIONS:
        return f"more than {POSITIONS:,} pieces; lower --max-pieces and --max-output-len"
    return ""


def compute_type(precision: str, device: torch.device) -> str:
    """The name that CTranslate2 has for a precision on a device."""
    return TYPES[precision][device.type != "cpu"]


def incapable(precision: str, device: torch.device) -> str:
    """What is wrong with a precision on this device, or ""."""
    try:
        able = library().get_supported_compute_types(device.type, device.index or 0)
    except (
        RuntimeError,
        ValueError,
    ) as error:  # a driver that it cannot use, a device unknown to it
        return f"{device.type}: {error}"
    if compute_type(precision, device) in able:
        return ""
    known = [name for name in TYPES if compute_type(name, device) in able]
    return f"--precision {precision} on this {device.type}, only {' and '.join(known)}"


def n_candidates(rules: Rules) -> int:
    """How many finished translations end the search for a source."""
    if rules.beam == 1:
        return 1
    patience = 1 if math.isinf(rules.patience) else rules.patience
    return math.ceil(patience * rules.beam)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Sources that CTranslate2 has begun to translate. limits: the length limit of each."""

    rows: Array
    sources: list[list[str]]
    limits: list[int]
    results: list[Any]


@dataclass(frozen=True, slots=True)
class _Block:
    """Batches and the translator that has them."""

    translator: Any
    batches: list[_Batch] = field(default_factory=list)


class CTranslate2Search:
    """Finds translations as `search.search` does.

    device: for torch and CTranslate2. threads: for CTranslate2; each translates a batch of its
    own. They start with the first search, so that a process can be forked before that.
    """

    def __init__(
        self, model: CTranslate2Model, rules: SearchSettings, device: torch.device, threads: int
    ) -> None:
        self._model = model
        self._device = device
        self._rules = rules
        self._threads = threads if device.type == "cpu" else 1
        self._overlaps = self._threads > 1 or device.type != "cpu"
        self._whole: Any = None
        self._ids = {name: id for id, name in enumerate(model.target)}
        exact = rules.lenpen == 0 and math.isinf(rules.patience)
        self._options = {
            "beam_size": rules.beam,
            "patience": n_candidates(rules) / rules.beam,
            "length_penalty": rules.lenpen or (0.0 if exact else TINY),
            "min_decoding_length": 0,
            "max_input_length": 0,
            "disable_unk": True,
            "suppress_sequences": [[model.target[PAD]], [model.target[BOS]]],
            "return_scores": rules.scores or rules.beam > 1,  # greedy search skips the softmax
            "return_end_token": True,
        }

    def __call__(
        self, ids: Ragged, side: Callable[[Array], Side], batches: Iterable[Array]
    ) -> Iterator[tuple[Array, list[list[Hypothesis]]]]:
        """Yields the rows of a batch and the n-best list of each.

        ids: of all sources. side: the source side of some rows.
        """
        begun: deque[_Block] = deque()
        for block in self._blocks(ids, batches):
            begun.append(self._begin(ids, side, block))
            if len(begun) > 1:
                yield from self._finished(begun.popleft())
        for one in begun:
            yield from self._finished(one)

    def _blocks(self, ids: Ragged, batches: Iterable[Array]) -> Iterator[list[Array]]:
        """Yields runs of batches that share a table."""
        if self._model.encoder is None:
            yield list(batches)
            return
        d_model = self._model.encoder.embedding.table.embedding_dim
        most = max(TABLE_NUMBERS // d_model, 1)
        if self._overlaps:
            most = min(most, max(len(ids.values) // BLOCKS, 1))
        block: list[Array] = []
        n_rows = 0
        for rows in batches:
            n = int(ids.lengths_of(rows).sum())
            if block and n_rows + n > most:
                yield block
                block, n_rows = [], 0
            block.append(rows)
            n_rows += n
        if block:
            yield block

    def _begin(self, ids: Ragged, side: Callable[[Array], Side], batches: list[Array]) -> _Block:
        if self._model.encoder is None:
            self._whole = self._whole or self._translator(self._model.files)
            block = _Block(self._whole)
            sources = [self._pieces(ids, rows) for rows in batches]
        else:
            block = _Block(self._loaded([self._states(side(rows)) for rows in batches]))
            sources = list(_runs(ids, batches))
        for rows, some in zip(batches, sources, strict=True):
            longest = limits(ids.lengths_of(rows).tolist(), self._rules.longest)
            results = self._translate(block.translator, some, max(longest), self._rules.nbest)
            block.batches.append(_Batch(rows, some, longest, results))
        return block

    def _pieces(self, ids: Ragged, rows: Array) -> list[list[str]]:
        """The names of the pieces of some sources, without EOS, which CTranslate2 adds."""
        name = self._model.source.__getitem__
        begins, ends = ids.offsets[rows].tolist(), ids.offsets[rows + 1].tolist()
        return [
            [name(id) for id in ids.values[begin : end - 1].tolist()]
            for begin, end in zip(begins, ends, strict=True)
        ]

    def _states(self, side: Side) -> np.ndarray:
        """The states of some sources, from torch, one after the other without padding, (n, D)."""
        encoder = self._model.encoder
        assert encoder is not None
        kind = HALF.get(self._model.precision)
        with torch.inference_mode(), torch.autocast(self._device.type, kind, kind is not None):
            here = to_device(side, self._device)
            states = encoder.up_to_attention(here, len(encoder.layers)).flatten(0, 1)  # (B * S, D)
            if side.pad is not None:  # asked on the CPU, where nobody waits for it
                real = (~side.pad).flatten().nonzero()[:, 0]
                states = states.index_select(0, moved(real, self._device))  # (n, D)
            return states.float().cpu().numpy()

    def _loaded(self, states: list[np.ndarray]) -> Any:
        """A translator whose table has these rows."""
        assert self._model.table is not None
        table = np.concatenate(states)
        return self._translator(
            {
                **self._model.files,
                "model.bin": self._model.table.with_table(table),
                "source_vocabulary.txt": "\n".join(map(str, range(len(table)))).encode(),
            }
        )

    def _translator(self, files: Mapping[str, bytes]) -> Any:
        try:
            return library().Translator(
                "synmt",
                self._device.type,
                device_index=self._device.index or 0,
                compute_type=compute_type(self._model.precision, self._device),
                inter_threads=self._threads,
                intra_threads=1,
                max_queued_batches=-1,
                files=dict(files),
            )
        except (RuntimeError, ValueError) as error:
            reason = str(error).split("\n")[0]
            raise Unavailable(f"CTranslate2 cannot open the model: {reason}") from None

    def _translate(
        self, translator: Any, sources: list[list[str]], longest: int, n: int, **others: Any
    ) -> list[Any]:
        """The futures of the results of one batch."""
        found: list[Any] = translator.translate_batch(
            sources,
            asynchronous=True,
            max_decoding_length=longest,
            num_hypotheses=n,
            **{**self._options, **others},
        )
        return found

    def _translate_to_limit(
        self, translator: Any, sources: list[list[str]], limit: int
    ) -> list[Any]:
        """Like `_translate`, for sources that reach their limit; the results have whole lists.

        As many prefixes as the beam has are cut at the limit, and could push complete translations
        off the list. More patience makes room for them; the search reaches the limit anyway.
        """
        beam = self._rules.beam
        n = n_candidates(self._rules) + (beam if beam > 1 else 0)
        more = {"max_batch_size": self._rules.batch_size, "patience": n / beam}
        return self._translate(translator, sources, limit, n, **more)

    def _finished(self, block: _Block) -> Iterator[tuple[Array, list[list[Hypothesis]]]]:
        """Waits for the batches of a block, and searches anew where a limit changes the result."""
        found = []
        again: dict[int, list[tuple[int, int]]] = {}  # limit -> (batch, place in it) of sources
        for number, batch in enumerate(block.batches):
            nbests = [self._hypotheses(future.result()) for future in batch.results]
            longest = max(batch.limits)
            for place, (nbest, own) in enumerate(zip(nbests, batch.limits, strict=True)):
                if not self._is_final(nbest, own, longest):
                    again.setdefault(own, []).append((number, place))
            found.append(nbests)
        begun = []
        for own, places in again.items():
            sources = [block.batches[number].sources[place] for number, place in places]
            begun.append(self._translate_to_limit(block.translator, sources, own))
        for places, futures in zip(again.values(), begun, strict=True):
            for (number, place), future in zip(places, futures, strict=True):
                found[number][place] = self._best(self._hypotheses(future.result()))
        for batch, nbests in zip(block.batches, found, strict=True):
            yield batch.rows, nbests

    def _is_final(self, nbest: list[Hypothesis], own: int, longest: int) -> bool:
        """Whether the limit `longest` gave the n-best list that a source's own limit gives."""
        if self._rules.beam == 1 and own == longest:  # one prefix, cut or not
            return True
        return not any(h.cut or h.length > own for h in nbest)

    def _best(self, found: list[Hypothesis]) -> list[Hypothesis]:
        """Complete translations first, and only as many as are wanted."""
        return sorted(found, key=lambda h: h.cut)[: self._rules.nbest]

    def _hypotheses(self, result: Any) -> list[Hypothesis]:
        lenpen, ids_of = self._rules.lenpen, self._ids
        found = []
        scores = result.scores or [0.0] * len(result.hypotheses)
        for pieces, score in zip(result.hypotheses, scores, strict=True):
            ids = [ids_of[piece] for piece in pieces]
            length = len(ids)
            cut = not ids or ids[-1] != EOS
            log_prob = score * length**lenpen
            found.append(Hypothesis(ids if cut else ids[:-1], log_prob, length, score, cut))
        return found


def _runs(ids: Ragged, batches: Iterable[Array]) -> Iterator[list[list[str]]]:
    """Yields the names of the rows of each source, batch by batch: they count from 0."""
    begin = 0
    for rows in batches:
        sources = []
        for n in ids.lengths_of(rows).tolist():
            sources.append([str(row) for row in range(begin, begin + n)])
            begin += n
        yield sources
