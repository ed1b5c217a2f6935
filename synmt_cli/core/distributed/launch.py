"""Several processes of one command on this machine, through torchrun."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Sequence

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from synmt_cli.errors import Stopped, WorkerLost

ENDED = (WorkerLost.exit_code, 128 + signal.SIGINT, 128 + signal.SIGTERM)


def launch(arguments: Sequence[str], n: int) -> int:
    """Runs `python -m synmt_cli ARGUMENTS` n times. Returns a status that is not 0, if one is.

    When one ends with another status than 0, the others are ended. They speak for themselves,
    so what torchrun logs is not shown.
    """
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL + 1)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=n,
        run_id="none",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "synmt_cli", *arguments)
    except ChildFailedError as error:
        return one_of([failure.exitcode for failure in error.failures.values()])
    except SignalException:  # passed on: the processes saved, or the next start will tell
        return Stopped.exit_code
    return 0


def one_of(statuses: Sequence[int]) -> int:
    """One status for several: what a process said itself, not that another one was lost.

    Nor that it was ended because of the other: torchrun sends signals, and may send two.

    >>> one_of([74, 78]), one_of([74, -9]), one_of([143, -9])
    (78, 74, 74)
    """
    said = [status for status in statuses if status > 0 and status not in ENDED]
    return min(said, default=WorkerLost.exit_code)


def without(option: str, arguments: Sequence[str]) -> list[str]:
    """The arguments without an option and its value.

    >>> without("--nproc", ["train", "--nproc", "2", "--run", "r", "--nproc=2"])
    ['train', '--run', 'r']
    """
    values = {i + 1 for i, argument in enumerate(arguments) if argument == option}
    return [
        argument
        for i, argument in enumerate(arguments)
        if i not in values and argument.partition("=")[0] != option
    ]
