"""The lines of metrics.jsonl as events that TensorBoard shows."""

import datetime
import errno
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from synmt_cli.errors import cannot_create, cannot_write, require_packages

NOT_DRAWN = ("event", "step", "time", "seconds", "metric", "value", "best")


def require() -> None:
    """Raises Unavailable without tensorboardX."""
    require_packages("--tensorboard", "tensorboard", "tensorboardX")


def refuse_unwritable(folder: Path) -> None:
    """Raises CreateError for a folder that cannot be made or written to; makes nothing yet."""
    place = folder.absolute()
    while not os.path.lexists(place):
        place = place.parent
    if not place.is_dir():
        problem = errno.ENOTDIR
    elif not os.access(place, os.W_OK | os.X_OK):
        problem = errno.EACCES
    else:
        return
    raise cannot_create(folder, OSError(problem, os.strerror(problem)))


class EventFile:
    """A new file in a folder of event files, to be closed.

    It begins by telling TensorBoard to forget the folder's earlier files, since it is given the
    whole course of a run, even when the run resumes.
    """

    def __init__(self, folder: Path) -> None:
        """Raises CreateError."""
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        self._folder = folder.absolute()  # tensorboardX would take `s3:x` for a server
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._writer = EventsWriter(str(self._folder / "events"), f".{os.getpid()}")
            self._write(Event(step=0, session_log=SessionLog(status=SessionLog.START)))
        except OSError as error:
            raise cannot_create(folder, error) from error

    def add(self, line: Mapping[str, Any]) -> None:
        """Writes the figures in a line of metrics.jsonl. Raises WriteError."""
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in _figures(line)]
        try:
            self._write(Event(step=line["step"], summary=Summary(value=values)), _clock(line))
        except OSError as error:
            raise cannot_write(self._folder, error) from error

    def close(self) -> None:
        """Closes the file; all events are in it."""
        self._writer.close()

    def _write(self, event: Any, clock: float | None = None) -> None:
        event.wall_time = time.time() if clock is None else clock
        self._writer.write_event(event)
        self._writer.flush()


def _clock(line: Mapping[str, Any]) -> float | None:
    """The seconds since 1970 of a line; None for one that does not say."""
    try:
        return datetime.datetime.fromisoformat(line["time"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None


def _figures(line: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yields (tag, number): `train/nll`, `dev/words/perplexity`, and `dev/bleu` by the metric."""
    kind = str(line.get("event", "train"))
    drawn = {name: value for name, value in line.items() if name not in NOT_DRAWN}
    if "metric" in line and line["metric"] != "loss":  # its value is -nll, so that more is better
        drawn[str(line["metric"])] = line.get("value")
    yield from _numbers(drawn, kind)


def _numbers(values: Mapping[str, Any], place: str) -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{place}/{name}")
        elif isinstance(value, int | float):
            yield f"{place}/{name}", float(value)
