"""Reports of `synmt analyze awsl --format json`, read back."""

from typing import Any

from synmt_cli.errors import DataError
from synmt_cli.formats.reports import documents
from synmt_cli.formats.reports.awsl import AwslReport, LayerWeights, RunWeights
from synmt_cli.io import json_files

COMMAND = "analyze awsl"


def read(path: str) -> AwslReport:
    """The report in a file, `-` for stdin. Raises DataError, ReadError."""
    document, source = documents.load(path, COMMAND)
    try:
        runs = [_run(one) for one in document["runs"]]
    except (KeyError, TypeError, ValueError):
        raise _foreign(source, "runs and their layers are missing or of other types") from None
    if not runs:
        raise _foreign(source, "no runs")
    return AwslReport(runs)


def _foreign(source: str, problem: str) -> DataError:
    return documents.foreign(source, COMMAND, problem)


def _run(one: Any) -> RunWeights:
    layers = [
        LayerWeights(
            int(layer["layer"]),
            [_text(name) for name in layer["variants"]],
            _share(layer["awsl"]),
            [_share(head["awsl"]) for head in layer["heads"]],
        )
        for layer in one["layers"]
    ]
    return RunWeights(_text(one["run"]), _text(one["variant"]), int(one["sentences"]), layers)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _share(value: Any) -> float | None:
    if value is not None and not (json_files.is_number(value) and 0 <= value <= 1):
        raise ValueError
    return None if value is None else float(value)
