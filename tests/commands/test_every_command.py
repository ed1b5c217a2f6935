"""What holds for all commands: names of options, -q and -v, completion, suggestions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from support.in_process import InProcess
from support.program import ENVIRONMENT, ROOT, shell

from synmt_cli import cli
from synmt_cli.commands import completion, options
from synmt_cli.core.run import config
from synmt_cli.core.variants.table import VARIANTS

WORDS = tuple(f"{name}.{key}" for name in ("model", "training") for key in config._options(name))


def all_options():
    for name in cli.COMMANDS:
        for one in cli.load(name).params:
            if not isinstance(one, cli.TyperArgument):
                yield name, one


def test_every_command_is_quiet_and_verbose():
    flags = {name: set() for name in cli.COMMANDS}
    for name, one in all_options():
        flags[name].update(one.opts)
    for name, known in flags.items():
        assert {"-q", "--quiet", "-v", "--verbose"} <= known, name


def test_an_option_that_takes_a_value_takes_one_in_every_command():
    kinds = {}
    for _, one in all_options():
        for flag in one.opts:
            kinds.setdefault(flag, set()).add(one.is_flag)
    assert {flag for flag, kind in kinds.items() if len(kind) > 1} == set()


@pytest.mark.parametrize(
    ("flag", "default"), [("--seed", options.SEED), ("--jobs", 1), ("--output", "-")]
)
def test_a_default_is_the_same_in_every_command(flag, default):
    found = {name: one.default for name, one in all_options() if flag in one.opts}
    for name in [name for name, value in found.items() if value is None]:
        del found[name]  # a required option has no default
    assert len(found) > 2
    assert set(found.values()) == {default}


@pytest.mark.parametrize(
    "command",
    [
        ("linearize", "-", "-"),
        ("featurize", "x", "-", "-"),
        ("check", "-", "-"),
        ("info", "-", "-"),
        ("featurize", "--tgt", "-"),
        ("vocab", "encode", "-m", "x", "-", "-"),
        ("tune", "-m", "x", "-", "-"),
        ("likelihood", "-m", "x", "--tgt", "-"),
        ("analyze", "heads", "-m", "x", "-", "-"),
        ("parser", "train", "-", "--dev", "-", "-o", "x"),
        ("multitask", "--spm", "x", "--penn", "-"),
    ],
)
def test_stdin_is_read_once(run, command):
    done = run(*command)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b": only one input can be stdin" in done.stderr


REPORTS = {
    ("check",): ["x"],
    ("info",): ["x"],
    ("view",): ["x"],
    ("evaltree",): ["x", "x y", "y x", "y z x"],
    ("score",): ["x y", "y x", "y z --refs x", "y S=z S=x", "--from-report x"],
    ("score", "--by"): [
        "length --src x y z",
        "rare:x y z",
        "labels:x y z",
        "depth --src-trees x y z",
    ],
    ("score", "--sign-over"): ["x y", "y x"],
    ("score", "--segment-scores"): ["comet=x"],
    ("report",): ["--score x", "--segments S=x", "--ref x --segments S=y", "--awsl x"],
    ("tune", "-m", "y"): ["x"],
    ("translate", "-m", "y"): ["x", "x --parser z", "z --parser x", "z --tuned x"],
    ("likelihood", "-m", "y"): ["x", "z --tgt x"],
    ("mixup", "score"): ["x", "y x"],
    ("vocab", "info"): ["x"],
    ("vocab", "train"): ["x", "y x", "y --symbols x"],
    ("parser", "train"): ["x", "y --dev x"],
    ("synth", "--exclude"): ["x"],
    ("analyze", "attention", "-m", "y"): ["x", "z --parser x"],
    ("analyze", "heads", "-m", "y"): ["x"],
    ("analyze", "awsl", "-m", "y"): ["x"],
    ("analyze", "probe", "-m", "y"): ["x"],
    ("plot", "attention"): ["x", "z --trees x"],
    ("plot", "awsl"): ["x"],
    ("plot", "heads"): ["x"],
    ("plot", "scores"): ["x"],
    # Filters may write to the file that they change, unless they make another format of it.
    ("featurize",): [
        "x",
        "--from text y x",
        "y --tgt x",
        "y --tgt-conllu x",
        "y --spm x",
        "y --spm z --tgt z --tgt-spm x",
    ],
    ("parse",): ["-m x y", "--known x y", "-m y x", "--known y z x", "-m y --from tokens x"],
    ("perturb",): ["--label-noise 1 --label-set x y", "--confusions x y z", "--confusions y x z"],
    ("linearize",): ["--spm x y", "--format symbols x", "x", "--spm y --format jsonl x"],
    ("delinearize",): ["--spm x y", "x", "--format conllu y x"],
    ("multitask",): [
        "--spm x y",
        "--spm z --tgt-spm x y",
        "--spm z --penn x y",
        "--spm z x",
        "--format symbols x",
        "--format symbols --penn x",
    ],
    ("vocab", "encode"): ["-m x y", "-m y x"],
    ("vocab", "decode"): ["-m x y", "-m y --ids z x"],
    ("vocab", "convert"): ["x"],
    ("bucket-by-length",): ["y --src x", "--format counts x"],
    ("challenge", "--deprel", "obl"): ["--format text y --src x", "--format ids x"],
}


@pytest.mark.parametrize(
    ("command", "files"), [(command, files) for command, each in REPORTS.items() for files in each]
)
def test_what_a_command_finds_replaces_no_input(forked, tmp_path, command, files):
    (tmp_path / "x").write_text("kept\n")
    (tmp_path / "link").symlink_to("x")
    done = forked(*command, *files.split(), "-o", "link", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b": link is an input, which would be replaced: name another file" in done.stderr
    assert (tmp_path / "x").read_text() == "kept\n"


def test_filters_may_write_to_the_file_that_they_change(run, tmp_path, tiny_udpipe):
    (tmp_path / "x").write_text("1\tGo\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    for command in (
        ("parse", "-m", tiny_udpipe, "--from", "conllu", "x"),
        ("filter", "x"),
        ("perturb", "--head-noise", "1", "x"),
        ("bucket-by-length", "--format", "labelled", "x"),
    ):
        done = run(*command, "-o", "x", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, b"")
        assert (tmp_path / "x").read_bytes().count(b"1\tGo\t") == 1


def test_a_file_that_is_stdin_is_not_replaced(tmp_path):
    tree = "1\tGo\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "x").write_text(tree)
    done = shell("synmt linearize -o x < x", tmp_path)
    assert (done.returncode, (tmp_path / "x").read_text()) == (2, tree)
    assert b": x is an input, which would be replaced: name another file" in done.stderr


def test_pipes_devices_and_stdin_are_replaced_by_nothing(run, tmp_path):
    (tmp_path / "-").write_text("the file of this name is not what - means\n")
    for given, output in (("-", "-"), ("/dev/null", "/dev/null"), ("/dev/stdin", "-")):
        assert run("check", given, "-o", output, stdin=b"a\n", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("train", "--train", "x", "--pretrained", ""),
            "--pretrained is empty: leave it out, or give its RUN",
        ),
        (("train", "--train", "x", "--dev="), "--dev is empty: leave it out, or give its FILE"),
        (
            ("train", "--train", "x", "--variant", ""),
            "--variant is empty: leave it out, or give its NAME[+NAME]",
        ),
        (("translate", "-m", "x", "--parser", ""), "--parser is empty: leave it out, or give its "),
        (("report", "--src", ""), "--src is empty: leave it out, or give its FILE"),
        (("score", "x", "y", "--src-trees", ""), "--src-trees is empty: leave it out, or give its"),
    ],
)
def test_a_variable_that_is_not_set_is_no_default(run, arguments, message):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert f": {message}" in done.stderr.decode()


def test_an_empty_name_of_an_output_is_no_stdout(run):
    for command in (("translate", "-m", "x"), ("filter",), ("linearize",)):
        done = run(*command, "-o", "", stdin=b"a\n")
        assert (done.returncode, done.stdout) == (73, b"")
        assert b": cannot create '': Is a directory" in done.stderr


def test_a_folder_that_is_gone_is_named_as_the_problem(tmp_path):
    (tmp_path / "a").write_text("one two\n")
    done = shell(f"mkdir gone; cd gone; rmdir ../gone; synmt filter {tmp_path}/a -o b", tmp_path)
    assert (done.returncode, done.stdout) == (73, b"")
    assert done.stderr.endswith(b": the current folder is gone; change to one that exists\n")


def test_verbose_says_what_is_done_and_quiet_says_nothing(run, tmp_path):
    (tmp_path / "a").write_text("one two\nthree\n")
    done = run("filter", "-v", "--max-len", 1, "a", "-o", "b", cwd=tmp_path)
    lines = [line.removeprefix("synmt filter: ") for line in done.stderr.decode().splitlines()]
    given, reads, counted, wrote, _, took = lines
    assert given.startswith("options: a --from auto --min-len 1 --max-len 1 --unit words ")
    assert (reads, wrote) == ("reads a", "wrote b")
    assert counted.startswith("filtered: 2 pairs in ")
    assert re.match(r"done in 0\.\d\d s, .*CPU time", took)
    done = run("filter", "--max-len", 1, "a", cwd=tmp_path)
    assert done.stderr == b"synmt filter: kept 1 of 2 pairs; rejected: 1 max-len\n"
    assert run("filter", "-q", "--max-len", 1, "a", cwd=tmp_path).stderr == b""
    assert run("filter", "-q", "absent", cwd=tmp_path).stderr.startswith(b"synmt filter: cannot")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("trian",), "synmt: no command 'trian'; did you mean synmt train? (see synmt --help)"),
        (("encode",), "synmt: no command 'encode'; did you mean synmt vocab encode? (see "),
        (("vocab", "trian"), "synmt: no command 'vocab trian'; did you mean synmt vocab train? "),
        (("xyzzy",), "synmt: no command 'xyzzy' (see synmt --help)"),
        (("train", "--varint", "x"), "synmt train: no option --varint; did you mean --variant?"),
        (("filter", "--format", "x"), "synmt filter: Invalid value for '--format': 'x' is not"),
    ],
)
def test_what_is_mistyped_gets_a_suggestion(run, arguments, message):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(message)
    assert done.stderr.count(b"\n") == 1


def offered(complete, incomplete="", **given):
    """The words of a completer that typer would offer: those that begin with `incomplete`."""
    context = SimpleNamespace(params=given)
    items = complete(context, incomplete) if given else complete(incomplete)
    return [word for word, _ in items if word.startswith(incomplete)]


def test_names_complete_one_after_the_other():
    assert offered(completion.variant, "pas") == ["pascal"]
    assert offered(completion.variant, "pascal+g") == ["pascal+gps", "pascal+gcn"]
    assert "gps+gps" not in offered(completion.variant, "gps+")
    assert offered(completion.metrics, "bleu,chrf+") == ["bleu,chrf+", "bleu,chrf++"]
    assert offered(completion.fields, "depth,struct") == ["depth,struct_abs", "depth,struct_rel"]
    assert offered(completion.division, "dep") == ["depth:3,5,7,9", "deprel:"]
    assert offered(completion.variants, "vanilla,dep+re") == ["vanilla,dep+rel"]
    assert "rel,rel+gps" in offered(completion.variants, "rel,rel+")
    assert offered(completion.tree_metrics, "uas,l") == ["uas,lemmas", "uas,las", "uas,la"]
    assert "paper-dep-both" in offered(completion.preset, "paper-dep-b")


def test_settings_complete_to_their_choices_or_their_default():
    chosen = {"variant": "gcn+pascal"}
    found = offered(completion.setting, **chosen)
    assert {f"{word}=" for word in WORDS} <= set(found)
    assert "pascal.heads=" in found
    assert "gps.layer=" not in found
    assert offered(completion.setting, "model.norm=p", **chosen) == [
        "model.norm=post",
        "model.norm=pre",
    ]
    assert offered(completion.setting, "training.lr", **chosen) == ["training.lr=0.0007"]
    assert offered(completion.setting, "pascal.parent", **chosen) == [
        "pascal.parent_only=true",
        "pascal.parent_only=false",
    ]


def test_settings_of_variants_are_those_of_their_builders():
    found = completion._settings("")
    for name in VARIANTS:
        known = {f"{name}.{key}": one for key, one in VARIANTS[name].options().items()}
        assert known.keys() == {one for one in found if one.startswith(f"{name}.")}
        for key, one in known.items():
            assert found[key].meaning == one.meaning


def test_checkpoints_are_those_of_the_run(tmp_path):
    (tmp_path / "checkpoints" / "step-7").mkdir(parents=True)
    names = offered(completion.checkpoint, model=[str(tmp_path)])
    assert names == ["best", "last", "step-7"]


def test_completion_never_loads_torch():
    program = """
import sys
from types import SimpleNamespace
from synmt_cli.commands import completion
for name, one in vars(completion).items():
    if name in ("setting", "checkpoint"):
        list(one(SimpleNamespace(params={}), ""))
    elif getattr(one, "__name__", "") == "complete":
        assert list(one("")), name
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("synmt train --variant pascal+g", "pascal+gps pascal+gcn"),
        ("synmt train --variant = pas", "pascal"),
        ("synmt train --set model.norm = p", "post pre"),
        ("synmt train --set = model.norm =", "post pre"),
        ("synmt bucket-by-length --by length : 2", "20,30,40,50"),
        ("synmt score a b -M bleu,t", "bleu,ter"),
        ("synmt vocab tr", "train"),
    ],
)
def test_bash_completes(words, answer):
    """The function of `--show-completion`, called as bash calls it, which cuts words at = and :."""
    script = f"""
eval "$(_SYNMT_COMPLETE=source_bash synmt)"
COMP_WORDS=({words}) COMP_CWORD={len(words.split()) - 1}
_synmt_completion synmt
echo "${{COMPREPLY[@]}}"
"""
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(["bash", "-c", script], capture_output=True, env=environment, check=True)
    assert (done.stdout.decode().split(), done.stderr) == (answer.split(), b"")


@pytest.mark.parametrize("shell_name", ["zsh", "fish"])
def test_other_shells_get_the_whole_word(run, shell_name):
    asked = {
        "_SYNMT_COMPLETE": f"complete_{shell_name}",
        "_TYPER_COMPLETE_ARGS": "synmt train --set model.norm=",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    answer = run(env=asked).stdout.decode()
    assert answer.count("model.norm=pre") == answer.count("model.norm=post") == 1


TRAIN = ("--train", "text", "--dev", "text", "--run", "run")


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("matplotlib", "plot", ("plot", "scores", "-o", "x.png", "scores.json")),
        ("matplotlib", "report", ("report", "--score", "scores.json", "-o", "r.html")),
        ("jinja2", "report", ("report", "--score", "scores.json", "-o", "r.html")),
        ("tensorboardX", "tensorboard", ("train", *TRAIN, "--tensorboard", "logs")),
    ],
)
def test_what_is_not_installed_is_named(
    capfdbinary, tmp_path, monkeypatch, package, extra, command
):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_bytes(b"a\n")
    synmt = InProcess(capfdbinary)
    synmt("score", "-M", "bleu", "--format", "json", "-o", "scores.json", "text", "text")
    done = synmt(*command)
    assert (done.returncode, done.stdout) == (69, b"")
    said = f"needs {package}; run: pip install 'synmt-cli[{extra}]'\n"
    assert done.stderr.decode().endswith(said)
    assert sorted(os.listdir(tmp_path)) == ["scores.json", "text"]
