"""Reading what a run is made of."""

import pytest

from synmt_cli import signals
from synmt_cli.core.run.config import resolve
from synmt_cli.core.training.session import Inputs, open_session
from synmt_cli.errors import Stopped


def test_a_signal_ends_the_reading_of_records(example_folder):
    request = signals.Request()
    inputs = Inputs([str(example_folder / "train.jsonl")], "")
    config = resolve(None, "tiny", [])
    assert len(open_session(config, inputs, "cpu", request).train) > 0
    request.number = 15
    with pytest.raises(Stopped):
        open_session(config, inputs, "cpu", request)
