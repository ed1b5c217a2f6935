"""Too little memory is reported before a library ends the process; unnamed files need no folder."""

import resource
import sys

import pytest

from synmt_cli.errors import Unavailable
from synmt_cli.io import memory


def test_memory_is_there_or_not():
    assert memory.is_available(2**20)
    assert not memory.is_available(2**60)
    assert not memory.is_available(2**70)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_library_is_not_loaded_without_the_memory_for_it(monkeypatch, name, limited):
    limit = 2**40 if limited else resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    asked = []
    monkeypatch.setattr(memory, "is_available", asked.append)
    memory.guard_imports()
    finder = sys.meta_path[0]
    if not limited:
        assert not isinstance(finder, memory._Guard)
        return
    assert finder.find_spec("json", None) is None
    with pytest.raises(Unavailable, match=rf"cannot load {name}: it needs about \d+ MiB of mem"):
        finder.find_spec(name, None)
    assert asked[0] > (300 if name == "torch" else 80) * 2**20
    monkeypatch.setattr(memory, "is_available", lambda _: True)
    assert finder.find_spec(name, None) is None


def test_a_file_without_a_name_is_in_no_folder(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with memory.unnamed_file() as file:
        file.write(b"a")
        file.flush()
        with open(f"/dev/fd/{file.fileno()}", "rb") as again:
            assert again.read() == b"a"


def test_caches_are_bounded_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.setattr("os.environ", {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "500"})
    memory.bound_caches(64)
    assert memory.os.environ == {
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "500",
        "LRU_CACHE_CAPACITY": "64",
    }
