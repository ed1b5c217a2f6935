"""The figures of a training, line by line: metrics.jsonl."""

import datetime
import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from synmt_cli.core.run.directory import Run, read_metric
from synmt_cli.errors import cannot_write
from synmt_cli.io import regular_files, writing


class Metrics:
    """Writes metrics.jsonl. Lines after the step that a run resumes from are dropped first, as is a
    validation at that step if the checkpoint does not know of it: it is made again.

    Each line has `time`, of the clock in UTC, and `seconds` since training began, without the time
    between the last line before a stop and the start that resumes. `also` is called with each
    object, first with those that are kept.
    """

    def __init__(
        self,
        run: Run,
        step: int,
        also: Callable[[Mapping[str, Any]], None] = lambda _: None,
        *,
        is_validated: bool = True,
        guard: Callable[[], None] = lambda: None,
    ) -> None:
        """guard: raises where nothing may be written any more.

        Raises DataError for a line that is not a report, ReadError, CreateError, WriteError."""
        self._path, self._also, self._guard, seconds = run.metrics, also, guard, 0.0
        with writing.atomic(run.metrics, follow=False) as writer:
            for number, line in run.metric_lines() if os.path.lexists(run.metrics) else ():
                values = read_metric(line, run.metrics, number)
                is_dev = values.get("event") == "dev"
                if values["step"] <= (step - 1 if is_dev and not is_validated else step):
                    writer.write(line)
                    also(values)
                    before = values.get("seconds")
                    seconds = before if isinstance(before, float) else seconds
        self._begin = time.monotonic() - seconds

    def add(self, values: Mapping[str, Any]) -> None:
        """Appends one object, with the time. Raises WriteError."""
        self._guard()
        clock = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "seconds": round(time.monotonic() - self._begin, 3),
        }
        line = {**values, **clock}
        try:
            regular_files.append(self._path, json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise cannot_write(self._path, error) from error
        self._also(line)
