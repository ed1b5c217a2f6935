"""Several processes of one command on this machine, through torchrun."""

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
    """Runs `python -m synmt_cli ARGUMENTS` in n processes. Returns 0, or a status that is not.

    When one process fails, the others are ended. They print their own messages, so torchrun's
    log is not shown.
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
    except SignalException:  # passed on: the processes have saved, or the next start will say so
        return Stopped.exit_code
    return 0


def one_of(statuses: Sequence[int]) -> int:
    """One status for several: that of a process's own failure, if there is one.

    A process that lost another one, or was ended because of it, did not fail by itself; torchrun
    sends signals, and may send two.

    >>> one_of([74, 78]), one_of([74, -9]), one_of([143, -9])
    (78, 74, 74)
    """
    own = [status for status in statuses if status > 0 and status not in ENDED]
    return min(own, default=WorkerLost.exit_code)


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
