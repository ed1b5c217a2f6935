"""Facts about models, checkpoints and run directories, without loading torch.

Only the header of weights is read; `synmt check` verifies their digest.
"""

import hashlib
import os
from pathlib import Path

from synmt_cli.core.inspection.counts import Facts
from synmt_cli.core.inspection.course import Course
from synmt_cli.core.run.config import INFORMATION
from synmt_cli.core.run.directory import (
    STATE,
    STATE_CONTENT,
    STEP,
    WEIGHTS,
    Run,
    check_state,
    read_metric,
)
from synmt_cli.errors import ConfigError, DataError, Unavailable, cannot_read
from synmt_cli.formats.magic import Header, read_header
from synmt_cli.formats.spm import making
from synmt_cli.formats.udpipe_model import UNPACKED_LIMIT, parser_words
from synmt_cli.io import json_files, regular_files
from synmt_cli.io.digests import size_and_sha256


def of_sentencepiece(model: bytes, name: str) -> Facts:
    """Facts of a vocabulary. Raises DataError for a damaged one."""
    from synmt_cli.core.text.vocabulary import Vocabulary, fingerprint_of

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
    digest = hashlib.sha256(model).hexdigest()
    names = {"fingerprint": fingerprint_of(model), "sha256": digest}
    return {**size, **about, **usable, **names}


def of_udpipe(path: str) -> Facts:
    """The abilities of a UDPipe 1 model. Raises DataError for a damaged one, ReadError."""
    import ufal.udpipe as binding

    from synmt_cli.core.text.udpipe import load

    try:
        model = load(path)
    except Unavailable:
        raise DataError(path, None, "damaged, or no UDPipe 1 model") from None
    sentence = binding.Sentence()
    sentence.addWord("a")
    size, digest = size_and_sha256(path)
    words = parser_words(regular_files.read(path, UNPACKED_LIMIT, follow=True))
    return {
        "words": None if words is None else len(words),
        "tokenizer": model.newTokenizer("") is not None,
        "tagger": bool(model.tag(sentence, "")),
        "parser": bool(model.parse(sentence, "")),
        "bytes": size,
        "sha256": digest,
    }


def of_weights(path: Path) -> Facts:
    """Facts in the header of a safetensors file. Raises ReadError, DataError."""
    header = _header(path, follow=True)
    return {
        "parameters": header.n_values,
        "tensors": len(header.shapes),
        "types": sorted(set(header.types.values())),
        "bytes": path.stat().st_size,
        "about": dict(sorted(header.about.items())),
    }


def _header(path: Path, follow: bool = False) -> Header:
    with regular_files.opened(path, follow) as file:
        try:
            return read_header(file, str(path), os.fstat(file.fileno()).st_size)
        except OSError as error:
            raise cannot_read(path, error) from error


def of_checkpoint(folder: Path) -> Facts:
    """The progress of training, and the size of the model. Raises ReadError, DataError."""
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
    path = folder / STATE
    state = json_files.read_object(path, STATE_CONTENT).get("state")
    if not isinstance(state, dict):
        raise DataError(str(path), 1, f"expected {STATE_CONTENT}")
    check_state(state, path)
    return state


def of_run(folder: Path) -> Facts:
    """What was trained, on what, by what, and how far. Raises ReadError, DataError, ConfigError."""
    run = Run(folder)
    tables = dict(run.settings().tables)
    steps = run.steps()
    facts: Facts = {"variant": tables.get("variant"), "preset": tables.get("preset")}
    if os.path.lexists(run.model):
        head = _header(run.model)
        facts["parameters"] = head.n_values
        step = STEP.fullmatch(f"step-{head.about.get('step', '')}")
        facts["step"] = int(step[1]) if step else None
        facts["averaged"] = head.about.get("averaged")
    facts["checkpoints"] = steps
    if steps:
        facts["finished"] = _state(run.checkpoint(steps[-1])).get("finished") or None
    facts |= course_of(run).facts()
    facts |= {name: tables.get(name) or {} for name in INFORMATION}
    facts["labels"] = len(run.labels())
    facts |= {
        name: table
        for name, table in tables.items()
        if isinstance(table, dict) and name not in (*INFORMATION, "training")
    }
    facts["training"] = tables.get("training")
    if os.path.lexists(run.environment):
        facts["environment"] = run.read_environment()
    return {name: value for name, value in facts.items() if value not in (None, {}, [])}


def course_of(run: Run) -> Course:
    """The course of a run, empty without a metrics.jsonl. Raises DataError, ReadError."""
    course = Course()
    if os.path.lexists(run.metrics):
        for number, line in run.metric_lines():
            course.add(read_metric(line, run.metrics, number))
    return course
