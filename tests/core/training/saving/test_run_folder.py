"""The folder of a training: one writer, which alone decides what happens to it."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.core.training.saving import run_folder
from synmt_cli.core.training.saving.metrics import Metrics
from synmt_cli.core.training.saving.run_folder import locked
from synmt_cli.errors import ConfigError, CreateError, WriteError

CONFIG = b"format = 1\n"


@contextmanager
def child(function):
    """Runs a function in a fork. Yields its process id; its status must be 0."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = function() or 0
        finally:
            os._exit(status)
    yield pid
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def begin_once(folder, rng, mark):
    """Writes a file, then config.toml unless it fails; nothing if both are there. Returns True."""
    with locked(folder):
        names = {name for name in os.listdir(folder) if name[0] != "."}
        if "config.toml" in names:
            assert names == {"config.toml", "spm.model"}
            return True
        assert names <= {"spm.model"}  # left by one that failed in a folder of another
        (folder / "spm.model").write_bytes(mark)
        time.sleep(rng.random() * 1e-3)
        if rng.random() < 0.5:
            raise InterruptedError
        (folder / "config.toml").write_bytes(mark)
    return True


def begin(folder, seed, when):
    """Begins until it is done or has been refused too often. Returns an exit status."""
    rng = random.Random(seed)
    time.sleep(max(when - time.monotonic(), 0))
    for _ in range(20):
        try:
            return not begin_once(folder, rng, b"format = 1\nseed = %d\n" % seed)
        except InterruptedError:
            continue
        except CreateError as error:
            if "another" not in str(error):
                return 2
            time.sleep(rng.random() * 1e-3)
    return 0


def test_of_many_that_begin_at_once_the_loser_removes_nothing(tmp_path):
    n_begun = 0
    for n in range(25):
        folder, when = tmp_path / f"r{n}", time.monotonic() + 0.01
        with ExitStack() as stack:
            for seed in range(3 * n, 3 * n + 3):
                stack.enter_context(child(partial(begin, folder, seed, when)))
        if (folder / "config.toml").exists():
            n_begun += 1
            assert (folder / "config.toml").read_bytes() == (folder / "spm.model").read_bytes()
    assert n_begun > 20
    assert not [*tmp_path.glob(".*")]


def fail(folder):
    with locked(folder):
        (folder / "spm.model").write_bytes(b"")
        raise KeyError


def test_a_folder_in_which_nothing_was_trained_goes(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("new/deep", "empty"):
        with pytest.raises(KeyError):
            fail(tmp_path / name)
    assert not (tmp_path / "new/deep").exists()
    assert {path.name for path in (tmp_path / "empty").iterdir()} == {".lock", "spm.model"}
    with locked(tmp_path / "empty"):  # it may be begun again
        (tmp_path / "empty/config.toml").write_bytes(CONFIG)


def test_files_of_a_users_own_are_left_alone_whatever_their_names(tmp_path):
    names = ("spm.model", "spm.tgt.model", "labels.json", ".notes.2024.old", ".x.1.tmp")
    for name in names:
        folder = tmp_path / name.strip(".")
        folder.mkdir()
        (folder / name).write_bytes(b"mine")
        with pytest.raises(CreateError, match="neither empty nor a run"), locked(folder):
            pass
        assert [path.name for path in folder.iterdir()] == [name]


def test_a_config_of_a_users_own_is_left_alone(tmp_path):
    """An experiment has one, for example, which its Makefile reads."""
    for name, problem in (("Makefile", "is an experiment"), ("notes", "not a run's")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_bytes(b"mine")
        (folder / "config.toml").write_text("[training]\nlr = 0.01  # mine\n")
        with pytest.raises(ConfigError, match=problem), locked(folder):
            pass
        assert {path.name for path in folder.iterdir()} == {name, "config.toml"}
        assert "# mine" in (folder / "config.toml").read_text()


@pytest.mark.parametrize("is_new", [True, False])
def test_nothing_is_written_to_a_folder_that_took_the_place_of_the_locked_one(tmp_path, is_new):
    run = Run(tmp_path / "r")
    with locked(run.folder) as refuse_moved:
        if not is_new:
            run.config.write_bytes(CONFIG)
        metrics = Metrics(run, 0, guard=refuse_moved)
        metrics.add({"step": 1})
        run.folder.rename(tmp_path / "aside")
        with pytest.raises(WriteError, match="moved or replaced"):
            metrics.add({"step": 2})
        run.folder.mkdir()
        run.metrics.write_bytes(b"another's")
        with pytest.raises(WriteError, match="moved or replaced"):
            metrics.add({"step": 3})
    assert run.metrics.read_bytes() == b"another's"
    assert (tmp_path / "aside/metrics.jsonl").read_bytes().count(b"\n") == 1


def test_a_folder_behind_a_link_may_be_trained_in(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "r").symlink_to("disk")
    with locked(tmp_path / "r"):
        (tmp_path / "r/config.toml").write_bytes(CONFIG)
    assert {path.name for path in (tmp_path / "disk").iterdir()} == {".lock", "config.toml"}


@pytest.mark.parametrize("place", ["/dev/null/x", "file/x", "file", "dangling", "a\0b"])
def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path, place):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(CreateError), locked(tmp_path / place):
        pass


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def flock(descriptor, how):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(CreateError, match="its file system has no file locks"), locked(tmp_path):
        pass


OTHERS = ("...1.old", "..1.tmp", ".config.1.old", ".checkpoints.x.tmp", ".thing.old", ".vimrc.tmp")
OTHERS += (".hyp.de.7.tmp", "checkpoints/.mean.7.tmp")  # translate and average are writing these


def test_only_what_training_leaves_is_tidied(tmp_path):
    """It goes whatever its kind; of a link only the link itself goes, not what it leads to."""
    folder = tmp_path / "r"
    (folder / "checkpoints/.step-3.77.old").mkdir(parents=True)
    (folder / "checkpoints/.step-4.77.1234abcd.tmp").mkdir()
    (folder / "config.toml").write_bytes(CONFIG)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"")
    for name in (".cache.7.old", ".labels.json.7.old", "checkpoints/.step-9.7.tmp"):
        (folder / name).symlink_to(tmp_path / "outside")
    os.mkfifo(folder / ".spm.model.7.tmp")
    (folder / ".config.toml.1.tmp").write_bytes(b"")
    for name in OTHERS:
        (folder / name).write_bytes(b"")
    with locked(folder):
        pass
    assert (tmp_path / "outside/file").exists()
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert names == {"config.toml", "checkpoints", "checkpoints/step-3", ".lock", *OTHERS}


def test_a_run_begun_again_keeps_no_vocabulary_of_before(tmp_path):
    models = (train([text] * 9, VocabularySettings(12)) for text in ("das ist es", "this is it"))
    source, target = (Vocabulary(model, "spm.model") for model in models)
    run = Run(tmp_path)
    for vocabularies in (Vocabularies(source, target), Vocabularies(source, source)):
        tables = {"vocabulary": {"fingerprint": vocabularies.fingerprint}}
        run_folder.establish(run, tables, vocabularies, [], {})
        assert run.vocabularies().fingerprint == vocabularies.fingerprint
