"""Event files: the frames of TFRecord, and in them the figures of metrics.jsonl, in order."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from support.event_files import events
from tensorboardX.proto.event_pb2 import SessionLog

from synmt_cli.core.run.directory import Run
from synmt_cli.core.training.saving.metrics import Metrics
from synmt_cli.core.training.saving.tensorboard import EventFile
from synmt_cli.errors import CreateError

WORDS = {"tokens": 9, "nll": 1.5, "perplexity": 4.5}
LINES = [
    {"event": "train", "step": 10, "epoch": 1, "nll": 4.5, "losses": {"sisa": 2.0}, "lr": 0.25},
    {"event": "dev", "step": 10, "nll": 4.0, "metric": "bleu", "value": 12.5, "best": True}
    | {"words": WORDS},
    {"event": "train", "step": 20, "epoch": 2, "nll": float("nan"), "losses": {}, "lr": 0.5},
]
FIGURES = [
    (10, {"train/epoch": 1, "train/nll": 4.5, "train/losses/sisa": 2, "train/lr": 0.25}),
    (10, {"dev/nll": 4, "dev/bleu": 12.5, **{f"dev/words/{k}": v for k, v in WORDS.items()}}),
]


def figures(found):
    return [(one.step, {v.tag: v.simple_value for v in one.summary.value}) for one in found]


def test_the_figures_of_each_line(tmp_path):
    with closing(EventFile(tmp_path / "board/pascal.1")) as file:
        for line in LINES:
            file.add(line | {"time": "2026-01-02T03:04:05.678+00:00"})
    (path,) = (tmp_path / "board/pascal.1").iterdir()
    version, start, *rest = events(path)
    assert version.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (0, SessionLog.START)
    assert figures(rest[:2]) == FIGURES
    assert [one.wall_time for one in rest] == pytest.approx([1767323045.678] * 3)
    ((step, last),) = figures(rest[2:])
    assert (step, sorted(last), str(last["train/nll"])) == (
        *(20, ["train/epoch", "train/lr", "train/nll"]),
        "nan",
    )


def test_a_resumed_run_tells_all_of_it_that_is_kept(tmp_path):
    run = Run(tmp_path)
    kept = [line | {"time": "2026-01-02T03:04:05.678+00:00"} for line in LINES[:2]]
    lines = [*kept, {"event": "train", "step": 11, "nll": 9.0}]  # lost by a kill, made again
    run.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with closing(EventFile(tmp_path / "board")) as file:
        Metrics(run, 10, file.add).add({"event": "train", "step": 11, "nll": 3.0})
    (path,) = (tmp_path / "board").iterdir()
    _, start, *rest = events(path)
    assert start.session_log.status == SessionLog.START
    assert figures(rest) == [*FIGURES, (11, {"train/nll": 3.0})]


def test_a_loss_is_not_drawn_below_zero_too(tmp_path):
    """As a metric it is -nll, since the greatest value is the best."""
    line = {"event": "dev", "step": 3, "nll": 2.5, "metric": "loss", "value": -2.5}
    with closing(EventFile(tmp_path)) as file:
        file.add(line)
    (path,) = tmp_path.iterdir()
    assert figures(events(path)[2:]) == [(3, {"dev/nll": 2.5})]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CreateError, match="file/board"):
        EventFile(tmp_path / "file/board")
