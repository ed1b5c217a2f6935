"""Filters over other workers: the same bytes, whatever happens to the workers."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from support.program import ENVIRONMENT

from synmt_cli.errors import Unavailable
from synmt_cli.io.reading import not_utf8
from synmt_cli.pool import connection

PARSE = "parse -m en.udpipe dev.en"
FEATURIZE = "featurize --spm spm.model --tgt dev.de dev.en.conllu"
FILTERS = [
    PARSE,
    FEATURIZE,
    "linearize --format jsonl dev.en.conllu",
    "delinearize --spm de.trees.model --format conllu de.trees.jsonl",
    "translate -m runs/base --beam 2 test.jsonl",
    "vocab encode -m spm.model dev.en dev.de",
    "vocab decode --ids -m spm.model dev.ids",
]


@pytest.fixture(scope="module")
def folder(example_folder):
    encode = f"{sys.executable} -m synmt_cli vocab encode --ids -m spm.model dev.en -o dev.ids"
    subprocess.run(encode.split(), cwd=example_folder, check=True)
    return example_folder


@pytest.fixture
def both(run, folder):
    """`both(options of map, filter)` runs a filter alone and by map, and gives both."""

    def run_both(options, line, stdin=b""):
        plain = run(*line.split(), stdin=stdin, cwd=folder)
        mapped = run("map", "-j", "0", *options, "--", *line.split(), stdin=stdin, cwd=folder)
        return plain, mapped

    return run_both


def same(plain, mapped):
    return (plain.returncode, plain.stdout, plain.stderr) == (
        mapped.returncode,
        mapped.stdout,
        mapped.stderr,
    )


def test_map_and_its_command_each_say_what_they_took(run, folder):
    done = run("map", "-v", "-j", "2", "--", *FILTERS[5].split(), cwd=folder)
    *_, filtered, whole = done.stderr.decode().splitlines()
    assert filtered.startswith("synmt vocab encode: done in ")
    assert whole.startswith("synmt map: done in ")


CASES = [
    (options, line)
    for line in FILTERS
    for options in (["-j2"], ["-j3", "--chunk=1"], ["-j2", "--chunk=7"])
    if options[1:] == ["--chunk=7"] or "translate" not in line  # which loads torch each time
]


@pytest.mark.parametrize(("options", "line"), CASES)
def test_every_filter_gives_the_same_bytes(both, options, line):
    plain, mapped = both(options, line)
    assert plain.returncode == 0
    assert plain.stdout.count(b"\n") >= (16 if "translate" in line else 40)  # several chunks
    assert same(plain, mapped)


def test_errors_are_those_of_the_filter(both):
    stdin = b"The dog sleeps.\n" * 19 + b"\xff\n" + b"The dog\n"
    plain, mapped = both(["-j2", "--chunk=4"], "parse -m en.udpipe", stdin)
    assert plain.stderr.decode() == f"synmt parse: <stdin>:20: {not_utf8(1)}\n"
    assert plain.returncode == 65
    assert same(plain, mapped)
    plain, mapped = both([], "parse -m missing test.en")
    assert plain.returncode == 69
    assert same(plain, mapped)
    plain, mapped = both([], "parse --nonsense")
    assert plain.returncode == mapped.returncode == 2


def test_its_output_goes_where_the_filter_says(run, folder, tmp_path):
    out = tmp_path / "out.conllu"
    done = run("map", "-j", "2", "--", *PARSE.split(), "-o", out, cwd=folder)
    assert (done.returncode, done.stdout) == (0, b"")
    assert out.read_bytes() == run(*PARSE.split(), cwd=folder).stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("map", b"Missing argument"),
        ("map -j 0 -- score a b", b"map cannot run 'score'; it can run parse, featurize,"),
        ("map -j 0 -- vocab train x", b"map cannot run 'vocab train'"),
        (
            "map -j 0 -- parse",
            b"synmt parse: give -m MODEL, or --known FILE with a tree for each line",
        ),
        ("map -j 0 -- parse -j 2 -m en.udpipe", b"-j is given to parse: give it to map"),
        (
            "map -j 0 --ray nonsense -- parse -m en.udpipe",
            b"--ray nonsense: expected auto or HOST:PORT",
        ),
    ],
)
def test_wrong_usage_is_named(run, folder, arguments, problem):
    done = run(*arguments.split(), cwd=folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert problem in done.stderr


def test_without_ray_it_says_what_to_install(run, folder, tmp_path):
    (tmp_path / "ray.py").write_text("raise ImportError('no ray')")
    arguments = ["map", "-j", "0", "--ray", "auto", "--", *PARSE.split()]
    done = run(*arguments, cwd=folder, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (69, b"")
    assert b"pip install 'synmt-cli[ray]'" in done.stderr


# --- on a cluster ---------------------------------------------------------------------------


def test_where_nobody_listens_is_said_at_once(run, folder):
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    done = run("map", "-j", "0", "--ray", address, "--", *PARSE.split(), cwd=folder)
    assert (done.returncode, done.stdout) == (69, b"")
    assert done.stderr.startswith(f"synmt map: no Ray cluster at {address}: Connec".encode())


def test_who_listens_and_is_no_cluster_is_not_waited_for(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr(connection, "PATIENCE", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        before = time.monotonic()
        with pytest.raises(Unavailable, match="no Ray cluster answers"):
            connection.connected(address).__enter__()
    assert time.monotonic() - before < 10


class Cluster:
    """Two nodes of one CPU each on this machine, in two sessions that can be killed apart."""

    def __init__(self, ray, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._ray, self._folder = ray, folder
        self._head = ["--head", f"--port={self.port}", "--node-ip-address=127.0.0.1"]
        self._head += [f"--temp-dir={folder}", "--include-dashboard=false"]
        self.head = self._start("head", *self._head)
        self.node = self.add()

    def add(self):
        self.node = self._start("node", f"--address={self.address}")
        return self.node

    def _start(self, name, *options):
        log = self._folder / f"{name}.log"
        command = [self._ray, "start", "--block", "--num-cpus=1", *options]
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [*command, "--object-store-memory=80000000"],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**os.environ, **ENVIRONMENT, "RAY_USAGE_STATS_ENABLED": "0"},
            )
        deadline = time.monotonic() + 40
        while b"Ray runtime started" not in log.read_bytes():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        return process

    def kill(self, node):
        for pid, _ in members(node.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait()

    def workers(self, node):
        """The present names of a node's actors, by process id."""
        every = ((pid, name.rstrip(b"\0")) for pid, name in members(node.pid))
        return {pid: name for pid, name in every if name.startswith(b"ray::Worker")}


def members(session):
    """(id, command) of each process of a session."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(path.name)) == session:
                yield int(path.name), (path / "cmdline").read_bytes()


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    program = Path(sys.executable).parent / "ray"
    with tempfile.TemporaryDirectory(prefix="synmt-", ignore_cleanup_errors=True) as name:
        started = Cluster(str(program), Path(name))
        yield started
        for node in (started.node, started.head):
            started.kill(node)


@pytest.mark.long
@pytest.mark.parametrize("line", [PARSE, FEATURIZE, FILTERS[4]], ids=lambda line: line.split()[0])
def test_a_cluster_gives_the_same_bytes_and_leaves_nothing(both, cluster, line, tmp_path):
    plain, mapped = both(["--ray", cluster.address, "--chunk", "5"], line)
    assert plain.returncode == 0
    assert same(plain, mapped)
    wait_until(lambda: not cluster.workers(cluster.head) | cluster.workers(cluster.node))


@pytest.mark.long
def test_a_cluster_gives_the_same_errors(both, cluster):
    stdin = b"The dog sleeps.\n" * 49 + b"\xff\n" + b"The dog\n"
    options = ["--ray", cluster.address, "--chunk", "4"]
    plain, mapped = both(options, "parse -m en.udpipe", stdin)
    assert plain.returncode == 65
    assert same(plain, mapped)
    plain, mapped = both(options, "parse -m missing test.en")
    assert plain.returncode == 69
    assert same(plain, mapped)


@pytest.mark.long
def test_nothing_is_written_where_it_runs(run, cluster, folder, tmp_path):
    line = [word if word[0] == "-" or word == "parse" else folder / word for word in PARSE.split()]
    places = {name: tmp_path / name for name in ("cwd", "home")}
    for place in places.values():
        place.mkdir()
    env = {"HOME": str(places["home"])}
    arguments = ["map", "-j", "0", "--ray", cluster.address, "--", *line]
    assert run(*arguments, cwd=places["cwd"], env=env).returncode == 0
    assert sorted(tmp_path.rglob("*")) == sorted(places.values())


@pytest.mark.long
def test_no_module_of_the_working_folder_runs_on_a_cluster(cluster, folder, tmp_path):
    for name in ("ray", "orjson", "ufal", "synmt_cli", "socket", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    program = str(Path(sys.executable).parent / "synmt")
    line = ["parse", "-m", str(folder / "en.udpipe"), str(folder / "test.en")]
    done = subprocess.run(
        [program, "map", "-j", "0", "--ray", cluster.address, "--", *line],
        cwd=tmp_path, env={**os.environ, **ENVIRONMENT}, capture_output=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (tmp_path / "ran").exists()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGPIPE])
def test_a_signal_leaves_whole_records_and_no_actors(cluster, folder, number):
    with start(cluster, folder) as process:
        process.stdin.write(b"The dog sleeps.\n" * 40)
        process.stdin.flush()
        block = b"".join(process.stdout.readline() for _ in range(7))
        if number == signal.SIGPIPE:
            process.stdout.close()
            process.stdin.write(b"The dog sleeps.\n" * 4_000)
            process.stdin.close()
            out, err = b"\n\n", process.stderr.read()
        else:
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
        assert (process.wait(20), err) == (128 + number, b"")
    assert (block + out).endswith(b"\n\n")
    wait_until(lambda: not cluster.workers(cluster.head) | cluster.workers(cluster.node))


@pytest.mark.long
def test_what_kills_every_worker_ends_the_run_and_names_the_lines(cluster):
    program = textwrap.dedent("""
        import os, sys
        from synmt_cli import pool
        from synmt_cli.errors import WorkerLost
        from synmt_cli.pool.cluster import Cluster
        from synmt_cli.pool.connection import connected
        def make():
            return lambda number: os.kill(os.getpid(), 9) if number == 20 else number
        care = pool.Care(where=lambda chunk: f"x:{chunk[0]}-{chunk[-1]}")
        with connected(sys.argv[1]) as ray, Cluster(ray, chunk=4) as cluster:
            try:
                for n in cluster.map(pool.Recipe(make, care=care), range(60), 2, 1):
                    os.write(1, b"%d " % n)
            except WorkerLost as error:
                os.write(1, str(error).encode())
    """)
    command = [sys.executable, "-c", program, cluster.address]
    done = subprocess.run(command, capture_output=True, timeout=60)
    numbers, said = done.stdout.split(b"x:", 1)
    assert numbers.split() == [b"%d" % n for n in range(len(numbers.split()))]
    assert re.match(rb"\d+-\d+: 3 workers were lost over these lines; the last: node ", said)
    assert done.stderr == b""


@pytest.mark.long
def test_the_work_of_a_killed_node_is_done_by_another(run, cluster, folder, tmp_path):
    """It is killed while it works: Ray says in the process's title what an actor does."""
    text, path = tmp_path / "text", tmp_path / "out"
    text.write_bytes((b"The dog sees the cat " * 12 + b"\n" + b"The dog sleeps.\n" * 3) * 300)
    with open(path, "wb") as file, start(cluster, folder, text, stdout=file) as process:
        wait_until(lambda: b"ray::Worker.run" in cluster.workers(cluster.node).values())
        cluster.kill(cluster.node)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert path.read_bytes() == run("parse", "-m", folder / "en.udpipe", text).stdout
    assert re.match(rb"synmt parse: warning: .* lost a worker .*; its work is done again\n", err)


def start(cluster, folder, *files, stdout=subprocess.PIPE):
    arguments = ["map", "-j", "0", "--ray", cluster.address, "--chunk", "20", "--"]
    arguments += ["parse", "-m", folder / "en.udpipe", "--line-buffered", *files]
    return subprocess.Popen(
        [sys.executable, "-m", "synmt_cli", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT},
    )


def wait_until(happens):
    deadline = time.monotonic() + 15
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)
