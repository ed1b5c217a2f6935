"""Figure 3 of Xie et al. (2021): the weight of syntax (red) and of plain attention (blue).

matplotlib is an optional extra, imported only here. It writes no file besides the picture.
"""

import importlib.util
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath

from synmt_cli.errors import Unavailable, UsageError, printable
from synmt_cli.formats.reports.awsl import RunWeights

KINDS = ("png", "svg", "pdf")
MARKS = "osD^vP*X"
PlottedLine = tuple[str, list[tuple[int, float]]]  # name in the legend, and (layer, AWSL)


def kind_of(path: str) -> str:
    """png, svg or pdf, by suffix. Raises UsageError, and Unavailable without matplotlib."""
    kind = PurePath(path).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise UsageError(f"--plot {printable(path)}: the name must end in .png, .svg or .pdf")
    if importlib.util.find_spec("matplotlib") is None:
        raise Unavailable("--plot needs matplotlib; run: pip install 'synmt-cli[plot]'")
    return kind


def lines(runs: Sequence[RunWeights]) -> list[PlottedLine]:
    """One line for each run, through the layers that its variant changes.

    Runs with one such layer each form one line together, as in the paper, where the layer of
    syntax is what varies.
    """
    lines: list[PlottedLine] = []
    for run in runs:
        points = [(o.layer, o.weight) for o in run.layers if o.weight is not None and o.variants]
        if points:
            lines.append((run.run, points))
    if len(lines) > 1 and all(len(points) == 1 for _, points in lines):
        return [("", sorted(points[0] for _, points in lines))]
    return lines


def picture(runs: Sequence[RunWeights], kind: str) -> bytes:
    """The bytes of the picture's file. kind: one of KINDS."""
    with _temporary_cache():
        import matplotlib
        from matplotlib.figure import Figure

        # The same figures give the same bytes.
        with matplotlib.rc_context({"svg.hashsalt": "synmt", "svg.fonttype": "path"}):
            figure = Figure(figsize=(5, 3.6), layout="constrained")
            axes = figure.subplots()
            drawn = lines(runs)
            for number, (name, points) in enumerate(drawn):
                layers, shares = zip(*points, strict=True)
                suffix = f", {printable(name)}" if len(drawn) > 1 else ""
                mark = MARKS[number % len(MARKS)]
                axes.plot(layers, shares, color="tab:red", label=f"AWSL{suffix}", marker=mark)
                plain = [1 - share for share in shares]
                axes.plot(layers, plain, color="tab:blue", label=f"standard{suffix}", marker=mark)
            axes.set(xlabel="layer (0 is the bottom one)", ylabel="weight of logits", ylim=(0, 1))
            axes.set_xticks(range(max((len(run.layers) for run in runs), default=0)))
            if drawn:
                figure.legend(loc="outside upper center", ncols=2, frameon=False)
            buffer = io.BytesIO()
            dates = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
            figure.savefig(buffer, format=kind, dpi=200, metadata=dates[kind])
    return buffer.getvalue()


@contextmanager
def _temporary_cache() -> Iterator[None]:
    """Lets matplotlib keep its cache in a folder that is removed afterwards."""
    before = os.environ.get("MPLCONFIGDIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MPLCONFIGDIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["MPLCONFIGDIR"]
            else:
                os.environ["MPLCONFIGDIR"] = before
