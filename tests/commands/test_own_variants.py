"""Models of variants in a user's own file: trained, kept, compared, and never run unasked."""

from __future__ import annotations

import re
import shutil

import pytest
from support.own_variants import EXAMPLE, changed
from support.program import shell
from support.tree_workshop import Workshop

from synmt_cli.core.variants.own_file import VARIABLE

OTHER_EQUATION = changed(".abs()", ".square()")
OTHER = "VARIANTS = [Variant('other', '', '', encoder='other'),"
SAME = changed("VARIANTS = [", f"# more\n{OTHER}")
SAME += b'\n\ndef other(spec):\n    """Another."""\n    return ()\n'
TRAIN = ("--dev", "dev.jsonl", "--precision", "fp32")
COPY = b"r/variants.py takes the copy there"


@pytest.fixture(scope="module")
def place(tmp_path_factory, forked):
    """A Workshop with `mine.py` and `r`, a run of its variant."""
    shop = Workshop(tmp_path_factory.mktemp("own"), forked)
    (shop.folder / "mine.py").write_bytes(EXAMPLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "mine.py")
        shop.train("near-parent", "training.save_every=1", run="r", options=TRAIN)
    return shop


@pytest.fixture
def named(place, monkeypatch):
    """`named(TEXT)` writes TEXT to a file and VARIABLE names it; `named(None)` unsets VARIABLE."""

    def name(text):
        monkeypatch.delenv(VARIABLE, raising=False)
        if text is not None:
            (place.folder / "now.py").write_bytes(text)
            monkeypatch.setenv(VARIABLE, "now.py")

    return name


def translations(place, run="r", **how):
    return place("translate", "-m", run, "dev.jsonl", **how)


def test_a_run_keeps_the_file_and_is_used_with_code_that_computes_the_same(place, named):
    assert (place.folder / "r/variants.py").read_bytes() == EXAMPLE
    named(EXAMPLE)
    found = translations(place, status=0).stdout
    assert len(found.splitlines()) == 5
    named(SAME)
    assert translations(place, status=0).stdout == found
    named((place.folder / "r/variants.py").read_bytes())
    assert translations(place, status=0).stdout == found


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (OTHER_EQUATION, b"r: now.py has another variant near-parent than it was trained with; "),
        (None, b"r: a file of its own has the variant 'near-parent'; "),
        (changed('"near-parent"', '"near"'), b"r: now.py has no variant 'near-parent'; "),
        (changed("source_trees=", "rereads=True, source_trees="), b"has another variant near-p"),
        (changed("encoder=", "decoder='near_parent', encoder="), b"has another variant near-p"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("translate", "-m", "r", "dev.jsonl"),
        ("average", "-m", "r", "-o", "mean"),
        ("analyze", "awsl", "-m", "r", "dev.jsonl"),
    ],
)
def test_a_run_is_not_used_with_other_code_nor_its_copy_unasked(place, named, text, what, command):
    copy = place.folder / "r/variants.py"
    before = copy.read_bytes()
    named(text)
    done = place(*command, status=78)
    assert what in done.stderr
    assert COPY in done.stderr
    assert not (place.folder / "mean").exists()
    assert copy.read_bytes() == before


def test_training_goes_on_with_the_same_code_alone(place, named):
    shutil.copytree(place.folder / "r", place.folder / "again", dirs_exist_ok=True)
    more = {"run": "again", "keep": True, "options": (*TRAIN, "--max-steps", 2)}
    named(OTHER_EQUATION)
    done = place.train("near-parent", "training.save_every=1", status=78, **more)
    assert b"again: now.py has another variant near-parent than it was trained" in done.stderr
    named(changed("source_trees=", "rereads=True, source_trees="))
    done = place.train("near-parent", "training.save_every=1", status=78, **more)
    assert b"variants.entries.near-parent.rereads = False, not True" in done.stderr
    named(SAME)
    done = place.train("near-parent", "training.save_every=1", **more)
    assert b"resuming again at step 1" in done.stderr
    assert (place.folder / "again/variants.py").read_bytes() == EXAMPLE
    place("check", "again", status=0)


def test_means_and_further_models_keep_the_file_too(place, named):
    named(SAME)
    place("average", "-m", "r", "-o", "averaged", status=0)
    assert (place.folder / "averaged/variants.py").read_bytes() == EXAMPLE
    assert translations(place, "averaged", status=0).stdout
    place.train("near-parent+rel", run="more", options=(*TRAIN, "--pretrained", "r"))
    assert (place.folder / "more/variants.py").read_bytes() == SAME
    named(None)
    place.train("vanilla", run="plain", options=TRAIN)
    assert not (place.folder / "plain/variants.py").exists()


def test_a_copy_that_was_changed_is_damage(place, named):
    shutil.copytree(place.folder / "r", place.folder / "changed")
    with open(place.folder / "changed/variants.py", "ab") as file:
        file.write(b"# more\n")
    named(EXAMPLE)
    done = translations(place, "changed", status=65)
    assert b"changed/variants.py: not the file of the digest in config.toml" in done.stderr
    assert b"not the file of the digest" in place("check", "changed", status=1).stdout


def test_a_mistake_ends_training_before_it_begins_and_names_its_line(place, named):
    named(changed("-self.strength *", "-self.strenght *"))
    done = place.train("near-parent", run="new", status=70)
    assert re.search(rb"now\.py:\d+: AttributeError: .*'strenght'", done.stderr.split(b"\n")[-2])
    assert b"bug in synmt" not in done.stderr
    assert b"typer" not in done.stderr  # the traceback begins in the file
    named(changed("return -self.strength * state", "return state[:, :, :1, :2]"))
    done = place.train("near-parent", run="new", status=78)
    assert b"now.py: variant near-parent: NearParent.added has to return numbers" in done.stderr
    named(changed("[layer]", "[]"))
    done = place("variants", "near-parent", status=0)
    assert b"warning: variant near-parent: NearParent.added is never called" in done.stderr
    named(None)
    done = place.train("near-parent", run="new", status=2)
    assert b" (SYNMT_VARIANTS names no file with others)" in done.stderr
    assert not (place.folder / "new").exists()


@pytest.mark.long
def test_processes_that_train_together_know_it_and_one_tries_it(place, named):
    named(changed("-self.strength *", "-self.strength.detach() *"))
    done = place.train("near-parent", run="two", options=(*TRAIN, "--nproc", 2))
    assert done.stderr.count(b"near-parent: NearParent.strength has no gradient") == 1
    assert (place.folder / "two/variants.py").exists()


def test_an_experiment_keeps_the_file_and_trains_anew_when_it_changes(place, named):
    named(EXAMPLE)
    sides = ("--src", "train.en", "--tgt", "train.de", "--src-trees", "train.en.conllu")
    place("init", "e", *sides, "--variants", "vanilla,near-parent", "--seeds", 1, status=0)
    named(None)
    folder = place.folder / "e"
    assert (folder / "variants.py").read_bytes() == EXAMPLE
    done = shell("make -pn 2> /dev/null | grep '^SYNMT_VARIANTS'", folder)
    assert done.stdout == b"SYNMT_VARIANTS := variants.py\n"
    rules = (folder / "Makefile").read_text()
    needs = {
        one: re.search(rf"^NEEDS_{one} :=(.|\n)*?\nTRAIN_", rules, re.MULTILINE)[0]
        for one in ("vanilla", "near-parent")
    }
    assert {one: "variants.py" in text for one, text in needs.items()} == {
        "vanilla": False,
        "near-parent": True,
    }
