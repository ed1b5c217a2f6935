"""A classifier of sentence vectors with one hidden layer, trained as in SentEval.

    p = softmax(W_2 sigmoid(dropout(W_1 v + b_1)) + b_2)

Adam with its defaults, batches of 64. Accuracy on dev is measured after every 4 epochs, and the
model that is best there is kept. Training ends at the sixth such check without a better model,
or after 200 epochs. SentEval also tunes a weight decay on dev; here there is none.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.run.device import one_thread
from synmt_cli.formats.senteval import DEV, TEST, TRAIN

BATCH, EPOCHS, PATIENCE, MOST_EPOCHS = 64, 4, 5, 200


@dataclass(frozen=True, slots=True)
class ClassifierSettings:
    """Settings of a classifier. hidden: units, 0 for a linear classifier.

    dropout: after the first matrix. seed: of its weights, of dropout and of the batches.
    """

    hidden: int = 200
    dropout: float = 0.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Fit:
    """The result of training: accuracy on test and on dev in percent, and epochs trained."""

    test: float
    dev: float
    epochs: int


def fit(
    splits: Mapping[str, tuple[Tensor, Tensor]], n_classes: int, settings: ClassifierSettings
) -> Fit:
    """Trains and tests. The same seed gives the same result; torch's generator is left as it was.

    splits: tr, va and te -> vectors (n, D), classes (n,).
    """
    with torch.random.fork_rng(devices=[]), one_thread():
        torch.manual_seed(settings.seed)
        model = _model(splits[TRAIN][0].size(1), n_classes, settings)
        optimizer = torch.optim.Adam(model.parameters())
        best, best_dev, n_worse, epoch = model, -1.0, 0, 0
        while epoch < MOST_EPOCHS and n_worse <= PATIENCE:
            for _ in range(EPOCHS):
                _epoch(model, optimizer, *splits[TRAIN])
            epoch += EPOCHS
            dev = accuracy(model, *splits[DEV])
            if dev > best_dev:
                best, best_dev = copy.deepcopy(model), dev
            else:
                n_worse += 1
        return Fit(accuracy(best, *splits[TEST]), best_dev, epoch)


def _model(width: int, n_classes: int, settings: ClassifierSettings) -> nn.Sequential:
    if not settings.hidden:
        return nn.Sequential(nn.Linear(width, n_classes))
    return nn.Sequential(
        nn.Linear(width, settings.hidden),
        nn.Dropout(settings.dropout),
        nn.Sigmoid(),
        nn.Linear(settings.hidden, n_classes),
    )


def _epoch(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> None:
    model.train()
    for rows in torch.randperm(len(x)).split(BATCH):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """The percentage of vectors that the model classifies right. x: (n, D), y: (n,)."""
    model.eval()
    return 100 * (model(x).argmax(-1) == y).double().mean().item()
