"""The file of a run's best model, which commands read unless another checkpoint is named."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from synmt_cli.core.distributed.sharding import Share
from synmt_cli.core.run import tensors
from synmt_cli.core.run.directory import WEIGHTS, Run
from synmt_cli.core.training.saving import checkpoint
from synmt_cli.errors import DataError


@dataclass(frozen=True, slots=True)
class BestModel:
    """Writes and checks the file. share: of the model that is trained. vocabulary: a fingerprint.

    Every process calls `save` and `copy`, and the first one writes.
    """

    run: Run
    share: Share
    vocabulary: str

    def save(self, step: int) -> None:
        """Writes the present weights. Raises ConfigError if one is not finite, WriteError."""
        checkpoint.save_weights(self.run.model, self.share, self._about(step))

    def copy(self, step: int) -> None:
        """Writes the weights of a checkpoint. Raises SynmtError."""
        if self.share.ranks.is_first:
            weights = self._read(self.run.checkpoint(step) / WEIGHTS)
            tensors.write(self.run.model, weights, self._about(step))
        self.share.ranks.wait()

    def refuse_damaged(self) -> None:
        """Raises DataError for a file that cannot be read, and says how it is made again."""
        try:
            self._read(self.run.model)
        except DataError as error:
            raise DataError(
                error.source,
                error.line,
                f"{error.problem}; without this file the same command writes it again",
            ) from error

    def _read(self, path: Path) -> dict[str, Tensor]:
        return checkpoint.read_weights(path, self.share.model, self.vocabulary)

    def _about(self, step: int) -> dict[str, str]:
        return {"vocabulary": self.vocabulary, "step": str(step)}
