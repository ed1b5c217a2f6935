"""RUN/cache: the training records as numbers, mapped at each start; it may be deleted.

Records are read a chunk at a time, and training maps the files, so neither has to fit into memory.
A cache is used while the records are in the same files, with the same names and times of change,
and the run reads the same things from them; else it is made anew.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels, PathTree
from synmt_cli.core.data.pairs import SOURCE, features_in
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.data.ragged_files import Columns, are_seals, mapped
from synmt_cli.core.data.record_reader import Chunk, CorpusReader
from synmt_cli.errors import SynmtError
from synmt_cli.io import json_files, reading, regular_files
from synmt_cli.io.digests import sha256
from synmt_cli.io.writing import atomic_folder

FORMAT = 3
INDEX, PATHS = "index.json", "paths"
INDEX_CONTENT = "an index of training records"


def _is_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(json_files.is_count, value.values()))


FIELDS: json_files.Fields = {
    "made_of": (lambda v: isinstance(v, dict), "an object"),
    "sha256": (json_files.is_texts, "a list of texts"),
    "seals": (are_seals, "types, sizes and digests of files"),
    "labels": (json_files.is_texts, "a list of texts"),
    "left_out": (_is_counts, "an object of numbers"),
    "n_treeless": (json_files.is_count, "a number"),
}


def made_of(reader: CorpusReader, paths: Sequence[str]) -> dict[str, Any]:
    """Everything that decides which numbers a cache has. Raises ReadError, UsageError."""
    known = {"labels": list(reader.labels)} if reader.labels else {}
    return {
        **known,
        "format": FORMAT,
        "order": sys.byteorder,
        "vocabulary": reader.vocabularies.fingerprint,
        "columns": list(reader.columns.dtypes()),
        "transitions": reader.targets.grammar is not None,
        "max_length": reader.max_length,
        "checked": reader.check is not None,
        "files": [_state(path) for path in paths],
    }


def stored(folder: Path, wanted: dict[str, Any]) -> tuple[Corpus, list[str]] | None:
    """The corpus of a cache, and the SHA-256 of the files it was read from.

    None if there is no cache, or if it is damaged or was made of something else.
    """
    try:
        if regular_files.problem(folder, is_folder=True):
            return None
        index = json_files.read_sealed(folder / INDEX, INDEX_CONTENT)
        json_files.refuse_other_fields(index, FIELDS, folder / INDEX)
        if index["made_of"] != wanted:
            return None
        columns = mapped(folder, [*wanted["columns"], PATHS], index["seals"])
    except SynmtError:
        return None
    if len(columns[PATHS].values) % 3:
        return None
    paths = PathTree(columns.pop(PATHS).values.reshape(-1, 3))
    needs = list(features_in(SOURCE, columns))
    encoding = Encoding(needs, Labels(index["labels"]), paths)
    left_out, n_treeless = Counter(index["left_out"]), index["n_treeless"]
    corpus = Corpus.of(columns, encoding, [], left_out, n_treeless)
    return corpus, index["sha256"]


def make(
    folder: Path, reader: CorpusReader, chunks: Iterable[Chunk], paths: Sequence[str]
) -> tuple[Corpus, list[str]]:
    """Reads the records into a cache, which takes its name when it is whole and on disk.

    Returns what `stored` does. Raises SynmtError, a DataError if a file changes while it is read.
    """
    wanted = made_of(reader, paths)
    with atomic_folder(folder, replace=True) as beside:
        digests = [sha256(path) for path in paths]
        encoding = reader.encoding()
        corpus, seals = reader.corpus(chunks, encoding, beside)
        encoding.labels.growing = False
        for path, (_, size, changed, inode) in zip(paths, wanted["files"], strict=True):
            reading.refuse_changed(path, (size, changed, int(inode)))
        table = encoding.paths.table
        with Columns({PATHS: np.int64}, beside) as kept:
            width = table.shape[1]
            kept.append({PATHS: Ragged(table.ravel(), np.arange(0, table.size + 1, width))})
            kept.whole()
        index = {
            "made_of": wanted,
            "sha256": digests,
            "seals": seals | kept.seals(),
            "labels": encoding.labels.names,
            "left_out": dict(corpus.left_out),
            "n_treeless": corpus.n_treeless,
        }
        json_files.write_sealed(beside / INDEX, index)
    return corpus, digests


def _state(path: str) -> list[Any]:
    """The name of a file, and its size, time of change and inode, which identify it."""
    size, changed, inode = reading.file_identity(path)
    # An inode may be an unsigned number of 64 bits, which not every reader of JSON accepts.
    return [json_files.as_text(os.path.basename(path)), size, changed, str(inode)]
