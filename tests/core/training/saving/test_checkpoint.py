"""What a checkpoint holds, and what is read of it."""

from dataclasses import fields

from synmt_cli.core.run import directory
from synmt_cli.core.training.saving.checkpoint import TrainingState


def test_the_state_that_is_read_has_the_fields_of_the_one_that_is_saved():
    saved = {field.name for field in fields(TrainingState)} - {"random"}  # not in state.json
    assert saved == set(directory._STATE_FIELDS)
    assert saved > set(directory._STATE_LATER)
