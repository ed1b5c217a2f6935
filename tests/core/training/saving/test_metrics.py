"""The figures of a training: what of an interrupted one stays, and what is refused."""

import json
from datetime import datetime, timedelta

import pytest

from synmt_cli.core.run.directory import Run
from synmt_cli.core.training.saving.metrics import Metrics
from synmt_cli.errors import DataError, WriteError


def test_lines_after_the_step_and_half_a_line_are_dropped(tmp_path):
    run = Run(tmp_path)
    run.metrics.write_bytes(b'{"step": 1}\n{"step": 2}\n{"st')
    Metrics(run, 1).add({"step": 2, "loss": 0.5})
    first, second = run.metrics.read_bytes().splitlines(keepends=True)
    assert first == b'{"step": 1}\n'
    values = json.loads(second)
    assert datetime.fromisoformat(values.pop("time")).utcoffset() == timedelta(0)
    assert 0 <= values.pop("seconds") < 60
    assert values == {"step": 2, "loss": 0.5}


@pytest.mark.parametrize("is_validated", [True, False])
def test_a_validation_that_the_checkpoint_does_not_know_is_dropped(tmp_path, is_validated):
    run = Run(tmp_path)
    lines = [b'{"event": "dev", "step": 1}\n', b'{"event": "train", "step": 2}\n']
    lines.append(b'{"event": "dev", "step": 2}\n')
    run.metrics.write_bytes(b"".join(lines))
    Metrics(run, 2, is_validated=is_validated)
    assert run.metrics.read_bytes() == b"".join(lines[: 3 if is_validated else 2])


def test_the_seconds_of_a_run_go_on_when_it_resumes(tmp_path):
    run = Run(tmp_path)
    run.metrics.write_bytes(b'{"step": 1, "seconds": 1000.5}\n{"step": 2, "seconds": 2000.5}\n')
    Metrics(run, 1).add({"step": 2})
    last = json.loads(run.metrics.read_bytes().splitlines()[-1])
    assert 1000.5 <= last["seconds"] < 1060


@pytest.mark.parametrize(
    "line",
    [
        *(b"[]", b"null", b"7", b"", b"{}", b'{"step": true}', b'{"step": "1"}', b'{"step": -1}'),
        *(b'{"step": 1.0}', b'{"step": NaN}', b'{"step": ' + b"9" * 5000 + b"}", b"[" * 20_000),
        *(b'{"step": 1, "step": 1}', b'{"step": 1, "x": "\xff"}', b'{"step": 1} {}', b"\0" * 70000),
    ],
)
def test_a_line_that_is_not_a_report_is_refused_and_kept(tmp_path, line):
    run = Run(tmp_path)
    content = b'{"step": 1}\n' + line + b'\n{"step": 2}\n'
    run.metrics.write_bytes(content)
    with pytest.raises(DataError, match=r"metrics\.jsonl:2: "):
        Metrics(run, 9)
    assert run.metrics.read_bytes() == content


def test_a_link_that_comes_while_training_is_not_written_through(tmp_path):
    (tmp_path / "outside").write_bytes(b"mine")
    run = Run(tmp_path)
    metrics = Metrics(run, 0)
    run.metrics.unlink()
    run.metrics.symlink_to("outside")
    with pytest.raises(WriteError, match=r"metrics\.jsonl"):
        metrics.add({"step": 1})
    assert (tmp_path / "outside").read_bytes() == b"mine"
