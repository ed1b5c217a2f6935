import hashlib
import os

import pytest

from synmt_cli.core.text import vocabulary_finding
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.errors import ConfigError, SynmtError


def test_vocabularies_are_looked_for_among_regular_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.model")
    (tmp_path / "folder.model").mkdir()
    (tmp_path / "dangling.model").symlink_to("nowhere")
    (tmp_path / "unreadable.model").symlink_to("/proc/self/mem")  # for the superuser, too
    with (tmp_path / "vast.model").open("wb") as file:
        file.truncate(5 * 2**30)
    with pytest.raises(SynmtError, match=r"model .* \*\.model and \*\.spm next") as caught:
        vocabulary_finding.find("0" * 16, [tmp_path])
    assert "dangling.model cannot be read (No such file" in str(caught.value)
    model = train(["das ist es"] * 9, VocabularySettings(12))
    (tmp_path / "z.model").write_bytes(model)
    digest = hashlib.sha256(model).hexdigest()[:16]
    found = vocabulary_finding.find(digest, [tmp_path])
    assert found.source.fingerprint == found.target.fingerprint == digest
    other = train(["this is it"] * 9, VocabularySettings(12))
    (tmp_path / "a.spm").write_bytes(other)
    both = f"{digest}+{hashlib.sha256(other).hexdigest()[:16]}"
    found = vocabulary_finding.find(both, [tmp_path])
    assert found.source.name == str(tmp_path / "z.model")
    assert found.target.name == str(tmp_path / "a.spm")
    with pytest.raises(ConfigError, match="the records name no sentencepiece model"):
        vocabulary_finding.find(None, [tmp_path])
