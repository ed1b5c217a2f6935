"""The folder of a training: one writer, which alone decides what happens to it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial

import pytest

from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.core.training.saving import run_folder
from synmt_cli.core.training.saving.run_folder import Metrics, locked
from synmt_cli.errors import ConfigError, CreateError, DataError, SynmtError, WriteError

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


def test_lines_after_the_step_and_half_a_line_are_dropped(tmp_path):
    run = Run(tmp_path)
    run.metrics.write_bytes(b'{"step": 1}\n{"step": 2}\n{"st')
    Metrics(run, 1).add({"step": 2, "loss": 0.5})
    first, second = run.metrics.read_bytes().splitlines(keepends=True)
    assert first == b'{"step": 1}\n'
    values = json.loads(second)
    assert datetime.fromisoformat(values.pop("time")).utcoffset() == timedelta(0)
    assert 0 <= values.pop("seconds") < 60
    assert values == {"step": 2, "loss": 0.5}


@pytest.mark.parametrize("is_validated", [True, False])
def test_a_validation_that_the_checkpoint_does_not_know_is_dropped(tmp_path, is_validated):
    run = Run(tmp_path)
    lines = [b'{"event": "dev", "step": 1}\n', b'{"event": "train", "step": 2}\n']
    lines.append(b'{"event": "dev", "step": 2}\n')
    run.metrics.write_bytes(b"".join(lines))
    Metrics(run, 2, is_validated=is_validated)
    assert run.metrics.read_bytes() == b"".join(lines[: 3 if is_validated else 2])


def test_the_seconds_of_a_run_go_on_when_it_resumes(tmp_path):
    run = Run(tmp_path)
    run.metrics.write_bytes(b'{"step": 1, "seconds": 1000.5}\n{"step": 2, "seconds": 2000.5}\n')
    Metrics(run, 1).add({"step": 2})
    last = json.loads(run.metrics.read_bytes().splitlines()[-1])
    assert 1000.5 <= last["seconds"] < 1060


@pytest.mark.parametrize(
    "line",
    [
        *(b"[]", b"null", b"7", b"", b"{}", b'{"step": true}', b'{"step": "1"}', b'{"step": -1}'),
        *(b'{"step": 1.0}', b'{"step": NaN}', b'{"step": ' + b"9" * 5000 + b"}", b"[" * 20_000),
        *(b'{"step": 1, "step": 1}', b'{"step": 1, "x": "\xff"}', b'{"step": 1} {}', b"\0" * 70000),
    ],
)
def test_a_line_that_is_not_a_report_is_refused_and_kept(tmp_path, line):
    run = Run(tmp_path)
    content = b'{"step": 1}\n' + line + b'\n{"step": 2}\n'
    run.metrics.write_bytes(content)
    with pytest.raises(DataError, match=r"metrics\.jsonl:2: "):
        Metrics(run, 9)
    assert run.metrics.read_bytes() == content


def test_a_link_that_comes_while_training_is_not_written_through(tmp_path):
    (tmp_path / "outside").write_bytes(b"mine")
    run = Run(tmp_path)
    metrics = Metrics(run, 0)
    run.metrics.unlink()
    run.metrics.symlink_to("outside")
    with pytest.raises(WriteError, match=r"metrics\.jsonl"):
        metrics.add({"step": 1})
    assert (tmp_path / "outside").read_bytes() == b"mine"


def test_vocabularies_are_looked_for_among_regular_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.model")
    (tmp_path / "folder.model").mkdir()
    (tmp_path / "dangling.model").symlink_to("nowhere")
    (tmp_path / "unreadable.model").symlink_to("/proc/self/mem")  # for the superuser, too
    with (tmp_path / "vast.model").open("wb") as file:
        file.truncate(5 * 2**30)
    with pytest.raises(SynmtError, match="no sentencepiece model") as caught:
        run_folder.find_vocabularies("0" * 16, [tmp_path])
    assert "dangling.model cannot be read (No such file" in str(caught.value)
    model = train(["das ist es"] * 9, VocabularySettings(12))
    (tmp_path / "z.model").write_bytes(model)
    digest = hashlib.sha256(model).hexdigest()[:16]
    found = run_folder.find_vocabularies(digest, [tmp_path])
    assert found.source.fingerprint == found.target.fingerprint == digest
    with pytest.raises(ConfigError, match="the records name no sentencepiece model"):
        run_folder.find_vocabularies(None, [tmp_path])


def test_a_run_begun_again_keeps_no_vocabulary_of_before(tmp_path):
    models = (train([text] * 9, VocabularySettings(12)) for text in ("das ist es", "this is it"))
    source, target = (Vocabulary(model, "spm.model") for model in models)
    run = Run(tmp_path)
    for vocabularies in (Vocabularies(source, target), Vocabularies(source, source)):
        tables = {"vocabulary": {"fingerprint": vocabularies.fingerprint}}
        run_folder.establish(run, tables, vocabularies, [], {})
        assert run.vocabularies().fingerprint == vocabularies.fingerprint
