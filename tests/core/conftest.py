"""A small vocabulary and a parsed corpus that the tests of translating share."""

from __future__ import annotations

import pytest
import torch

from synmt_cli.core.text import vocabulary_training
from synmt_cli.core.text.vocabulary import Vocabulary

TEXT = ["Tom and Mary go to school .", "A dog sleeps .", "The cats see the dogs in school ."]


@pytest.fixture(scope="session")
def vocabulary():
    settings = vocabulary_training.VocabularySettings(size=60)
    return Vocabulary(vocabulary_training.train(TEXT, settings))


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny products are slower with two."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
