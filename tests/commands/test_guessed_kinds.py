"""Text that begins like JSON: where the kind was a guess, the message names the way out."""

import pytest

CODE = b'{"we" met again}\nWe met again.\n'
HINT = b"; if this is text whose first line only looks like JSON, give --from text\n"
FILTERS = (
    ("filter",),
    ("bucket-by-length",),
    ("delinearize",),
    ("translate", "-m", "runs/pascal", "--max-output-len", "5", "--threads", "1"),
)


@pytest.mark.parametrize("text", [CODE, b"{}\nnothing\n", b'{"a": 1}\ncode\n', b'# x\n{"a": 1}\n'])
@pytest.mark.parametrize("command", FILTERS, ids=lambda command: command[0])
def test_a_guess_that_fails_names_the_other_kind(run, example_folder, command, text):
    done = run(*command, stdin=text, cwd=example_folder)
    assert (done.returncode, done.stderr.count(b"\n")) == (65, 1)
    assert done.stderr.endswith(HINT)
    stated = run(*command, "--from", "jsonl", stdin=text, cwd=example_folder)
    assert (stated.returncode, stated.stderr) == (65, done.stderr.replace(HINT, b"\n"))
    if command[0] != "delinearize":  # its text is transitions
        assert run(*command, "--from", "text", stdin=text, cwd=example_folder).returncode == 0


def test_a_later_record_is_no_guess(run):
    for later in (CODE, b"{}\n"):
        done = run("filter", stdin=b'{"src":"a"}\n' + later)
        assert (done.returncode, b"--from text" in done.stderr) == (65, False)


def test_check_goes_on_after_a_wrong_guess_and_trusts_a_suffix(run, tmp_path):
    done = run("check", stdin=CODE)
    first, second = done.stdout.splitlines(keepends=True)
    assert (done.returncode, first.endswith(HINT), HINT in second) == (1, True, False)
    assert run("check", "--from", "text", stdin=CODE).returncode == 0
    (tmp_path / "x.jsonl").write_bytes(CODE)
    (tmp_path / "x.txt").write_bytes(CODE)
    assert HINT not in run("check", tmp_path / "x.jsonl").stdout
    assert HINT in run("check", tmp_path / "x.txt").stdout
    assert run("info", tmp_path / "x.txt").stderr.endswith(HINT)


def test_commands_that_draw_trees_take_no_text(run):
    done = run("view", stdin=CODE)
    assert (done.returncode, b"--from text" in done.stderr) == (65, False)


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (("score", "a", "a", "--by", "depth:3", "--src-trees", "code"), b""),
        (("score", "a", "a", "--by", "rare:code", "--src", "a"), b""),
        (("report", "--ref", "a", "--src", "a", "--segments", "a", "--src-trees", "code"), b""),
        (("filter", "--exclude", "code", "a"), HINT.replace(b"--from", b"--exclude-format")),
        (("synth", "--exclude", "code"), HINT.replace(b"--from", b"--exclude-format")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_only_options_that_the_command_has_are_advised(run, tmp_path, command, advice):
    (tmp_path / "code").write_bytes(CODE)
    (tmp_path / "a").write_bytes(b"One line.\nAnother.\n")
    done = run(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr.count(b"\n")) == (65, 1)
    problem = f"synmt {command[0]}: code:1: invalid JSON at character ".encode()
    assert done.stderr.startswith(problem)
    _, semicolon, rest = done.stderr.partition(b";")
    assert semicolon + rest == advice
