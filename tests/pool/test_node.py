import os
import platform

import pytest

from synmt_cli import __version__
from synmt_cli.errors import ConfigError, DataError, ReadError, Unavailable, UsageError
from synmt_cli.pool import connection
from synmt_cli.pool.node import Worker, facts_of, problem, unloadable

PYTHON = platform.python_version()


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"weights")
    return str(path)


def test_a_machine_with_the_same_program_and_files_is_fit(model):
    assert problem(__version__, PYTHON, facts_of([model])) == ""


def test_another_program_is_named():
    assert problem("9.9.9", PYTHON, {}) == f"has synmt {__version__}, not 9.9.9"
    assert problem(__version__, "2.7.1", {}) == f"has Python {PYTHON}, not 2.7.1"


@pytest.mark.parametrize("content", [b"weightS", b"weights "])
def test_another_file_is_named(model, content):
    facts = facts_of([model])
    with open(model, "wb") as file:
        file.write(content)
    assert f"has another {model}: SHA-256" in problem(__version__, PYTHON, facts)


def test_a_missing_file_is_named(model):
    facts = facts_of([model])
    os.remove(model)
    found = problem(__version__, PYTHON, facts)
    assert found == (
        f"cannot read {model}: No such file or directory; every node needs it under that path"
    )
    with pytest.raises(ReadError):
        facts_of([model])


def test_a_worker_returns_errors_that_come_before_and_within_its_work(monkeypatch):
    monkeypatch.chdir(os.getcwd())  # back at the end
    worker = Worker("/")
    assert os.getcwd() == "/"

    def unfit():
        raise Unavailable("no")

    def picky(number):
        if number == 2:
            raise DataError("x", 3, "no")
        return -number

    assert str(worker.load(unfit)) == "no"
    assert worker.load(lambda: picky) is None
    results, error = worker.run([0, 1, 2, 3])
    assert (results, str(error)) == ([0, -1], "x:3: no")


def test_a_machine_that_cannot_load_the_program_is_named():
    said = (
        "The actor died because of an error raised in its creation task, ray::Worker.__init__() "
        "(pid=9, ip=10.0.0.2, actor_id=f6)\n  x\nModuleNotFoundError: No module named 'synmt_cli'\n"
    )
    assert unloadable(said) == (
        "node 10.0.0.2 cannot load synmt: ModuleNotFoundError: No module named 'synmt_cli' "
        "(install it there as it is here)"
    )
    assert unloadable("The actor died unexpectedly before finishing this task.") == ""


@pytest.mark.parametrize("address", ["", "local", "ray://host:10001", "host", "a b:1", "host:x"])
def test_an_address_is_auto_or_host_and_port(address):
    with pytest.raises(UsageError), connection.connected(address):
        pass


def test_what_ray_says_becomes_one_line():
    said = "Traceback:\n  File x\nRuntimeError: Version mismatch: The cluster\n    Ray: 2.9\n"
    found = connection.refusal(said, "at h:1")
    assert isinstance(found, ConfigError)
    assert str(found).endswith("Version mismatch: The cluster Ray: 2.9")
    found = connection.refusal("x\nConnectionError: Could not find any\n", "on this machine")
    assert isinstance(found, Unavailable)
    assert "ray start --head" in str(found)
