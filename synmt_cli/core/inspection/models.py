"""Facts about models, checkpoints and run directories, without loading torch.

Of weights only the header is read; `synmt check` verifies their digest.
"""

import hashlib
from pathlib import Path
from typing import Any

import orjson

from synmt_cli.core.inspection.counts import Facts
from synmt_cli.core.run.config import INFORMATION, from_file
from synmt_cli.core.run.directory import STATE, WEIGHTS, Run
from synmt_cli.errors import ConfigError, DataError, Unavailable, cannot_read, printable
from synmt_cli.formats.magic import Header, read_header
from synmt_cli.formats.spm import making
from synmt_cli.io import json_files, reading
from synmt_cli.io.digests import size_and_sha256


def of_sentencepiece(model: bytes, name: str) -> Facts:
    """Facts of a vocabulary. Raises DataError for a damaged one."""
    from synmt_cli.core.text.vocabulary import Vocabulary

    digest = hashlib.sha256(model).hexdigest()
    try:
        vocabulary = Vocabulary(model, name)
    except ConfigError as problem:  # a model of another tool, which synmt cannot use
        spec = making(model)
        size: Facts = {}
        usable: Facts = {"usable": False, "reason": str(problem)}
    except Unavailable:
        raise DataError(name, None, "damaged, or no sentencepiece model") from None
    else:
        spec = vocabulary.making
        size, usable = {"pieces": vocabulary.size}, {"symbols": len(vocabulary.symbols)}
    about = {
        "type": spec.type,
        "normalization": spec.normalization,
        "byte_fallback": spec.byte_fallback,
    }
    return {**size, **about, **usable, "fingerprint": digest[:16], "sha256": digest}


def of_udpipe(path: str) -> Facts:
    """The abilities of a UDPipe 1 model. Raises DataError for a damaged one, ReadError."""
    import ufal.udpipe as binding

    from synmt_cli.core.text.udpipe import load

    try:
        model = load(path, tried=True)
    except Unavailable:
        raise DataError(path, None, "damaged, or no UDPipe 1 model") from None
    sentence = binding.Sentence()
    sentence.addWord("a")
    size, digest = size_and_sha256(path)
    return {
        "tokenizer": model.newTokenizer("") is not None,
        "tagger": bool(model.tag(sentence, "")),
        "parser": bool(model.parse(sentence, "")),
        "bytes": size,
        "sha256": digest,
    }


def of_weights(path: Path) -> Facts:
    """Facts in the header of a safetensors file. Raises ReadError, DataError."""
    header = _header(path)
    return {
        "parameters": header.n_values,
        "tensors": len(header.shapes),
        "types": sorted(set(header.types.values())),
        "bytes": path.stat().st_size,
        "about": dict(sorted(header.about.items())),
    }


def _header(path: Path) -> Header:
    try:
        with reading.regular_file(str(path)) as file:
            return read_header(file, str(path), path.stat().st_size)
    except OSError as error:
        raise cannot_read(path, error) from error


def of_checkpoint(folder: Path) -> Facts:
    """Where training stood, and the size of the model. Raises ReadError, DataError."""
    state = _state(folder)
    head = _header(folder / WEIGHTS)
    figures = ("step", "epoch", "best_step", "best_value", "finished")
    return {
        **{name: state.get(name) for name in figures},
        "parameters": head.n_values,
        "vocab": head.about.get("vocabulary", ""),
    }


def _state(folder: Path) -> Facts:
    """The state of training, whether or not it has its digest."""
    sealed = json_files.read(folder / STATE)
    state = sealed.get("state") if isinstance(sealed, dict) else None
    if not isinstance(state, dict):
        raise DataError(str(folder / STATE), 1, "expected the state of a training run")
    return state


def of_run(folder: Path) -> Facts:
    """What was trained, on what, by what, and how far. Raises ReadError, DataError, ConfigError."""
    run = Run(folder)
    tables = dict(from_file(str(run.config)).tables)
    steps = run.steps()
    facts: Facts = {"variant": tables.get("variant"), "preset": tables.get("preset")}
    if run.model.is_file():
        head = _header(run.model)
        facts["parameters"] = head.n_values
        step = head.about.get("step", "")
        facts["step"] = int(step) if step.isdecimal() else None
        facts["averaged"] = head.about.get("averaged")
    facts["checkpoints"] = steps
    if steps:
        facts["finished"] = _state(run.checkpoint(steps[-1])).get("finished") or None
    facts |= _best(run.metrics)
    facts |= {name: tables.get(name) or {} for name in INFORMATION}
    facts["labels"] = len(run.labels())
    facts |= {
        name: table
        for name, table in tables.items()
        if isinstance(table, dict) and name not in (*INFORMATION, "training")
    }
    facts["training"] = tables.get("training")
    if run.environment.is_file():
        facts["environment"] = json_files.read(run.environment)
    return {name: value for name, value in facts.items() if value not in (None, {}, [])}


def _best(path: Path) -> Facts:
    """The best validation that metrics.jsonl tells of."""
    if not path.is_file():
        return {}
    best: Any = None
    with reading.open_source(str(path)) as source:
        for number, line in enumerate(reading.lines(source), 1):
            fields = event(line, path, number)
            if isinstance(fields, dict) and fields.get("best"):
                best = fields
    if best is None:
        return {}
    names = ("metric", "value", "step", "perplexity")
    return {"best": {name: best[name] for name in names if name in best}}


def event(line: bytes, path: Path, number: int) -> Any:
    """The value of a line of metrics.jsonl. Raises DataError."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(str(path), number, f"not JSON: {printable(error.msg)}") from None
