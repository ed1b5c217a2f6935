"""A small vocabulary and a parsed corpus that the tests of translating share."""

from __future__ import annotations

import pytest
import torch

from synmt_cli.core.text import vocabulary_training
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.variants import own_file

TEXT = ["Tom and Mary go to school .", "A dog sleeps .", "The cats see the dogs in school ."]


@pytest.fixture(scope="session")
def vocabulary():
    settings = vocabulary_training.VocabularySettings(size=60)
    return Vocabulary(vocabulary_training.train(TEXT, settings))


@pytest.fixture(autouse=True)
def one_thread():
    """Runs each test in one thread: tiny products are slower with two."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """`own(TEXT)` writes a file of one's own variants and sets the variable; None unsets it."""

    def write(text):
        own_file._read.cache_clear()  # the program reads a file once
        own_file._text.cache_clear()
        if text is None:
            monkeypatch.delenv(own_file.VARIABLE, raising=False)
            return None
        path = tmp_path / "mine.py"
        path.write_bytes(text)
        monkeypatch.setenv(own_file.VARIABLE, str(path))
        return path

    yield write
    write(None)
