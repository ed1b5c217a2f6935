"""`synmt perturb` as a user runs it."""

import io
import math
import random
import re

import pytest

from synmt_cli.core.jobs.cutting import cut_by_sentence
from synmt_cli.core.jobs.perturb import RANDOM, SHAPES, SHUFFLED, LabelSampler, Perturber
from synmt_cli.core.trees.heads import is_projective
from synmt_cli.core.trees.relations import RELATIONS, universal
from synmt_cli.core.trees.shapes import random_projective_tree
from synmt_cli.formats import conllu
from synmt_cli.io.reading import Source

TREES = (*SHAPES, RANDOM, SHUFFLED)
ZUM = b"""# sent_id = 1
# text = Das ist zum Lachen.
1\tDas\tder\tPRON\tPDS\tCase=Nom\t5\tnsubj\t5:nsubj\tTokenRange=0:3
2\tist\tsein\tAUX\tVAFIN\t_\t5\tcop\t5:cop\tTokenRange=4:7
3-4\tzum\t_\t_\t_\t_\t_\t_\t_\tTokenRange=8:11
3\tzu\tzu\tADP\tAPPR\t_\t5\tcase\t5:case\t_
4\tdem\tder\tDET\tART\t_\t5\tdet\t5:det\t_
4.1\t_\t_\t_\t_\t_\t_\t_\t5:dep\t_
5\tLachen\tLachen\tNOUN\tNN\t_\t0\troot\t0:root\tSpaceAfter=No
6\t.\t.\tPUNCT\t$.\t_\t5\tpunct\t5:punct\t_

"""
EMPTY = b"# text = \n# synmt_status = empty\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
FAILED = EMPTY.replace(b"empty", b"failed").replace(b"text = ", b"text = a b")
ONE = b"1\tJa\tja\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
LABELS = ("nsubj", "nsubj:pass", "obj", "det", "acl:relcl", "punct")


def treebank(n_sentences, n_words, seed=1):
    """CoNLL-U of random projective trees."""
    rng = random.Random(seed)
    blocks = []
    for _ in range(n_sentences):
        for i, head in enumerate(random_projective_tree(n_words, rng.random), 1):
            label = "root" if head < 0 else rng.choice(LABELS)
            blocks.append(f"{i}\tw\tw\tX\t_\t_\t{head + 1}\t{label}\t_\t_\n")
        blocks.append("\n")
    return "".join(blocks).encode()


def sentences(data):
    return list(conllu.read(Source("f", io.BytesIO(data))))


def perturbed(data, **options):
    perturber = Perturber(**options)
    parts = cut_by_sentence(conllu.batches(Source("f", io.BytesIO(data))))
    return b"".join(block for work in parts for block in perturber.run(work).records)


BANK = treebank(400, 10)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tree", [None, *TREES])
def test_only_heads_labels_and_what_they_make_untrue_change(tree, seed):
    before = ZUM.split(b"\n")
    after = perturbed(ZUM, tree=tree, heads=0.4, labels=0.4, seed=seed).split(b"\n")
    marks = [line for line in after if line.startswith(b"# synmt_perturbed = ")]
    assert len(marks) == 1
    after.remove(marks[0])
    for old, new in zip(before, after, strict=True):
        if old != new:
            old, new = old.split(b"\t"), new.split(b"\t")
            assert (old[:6], old[9]) == (new[:6], new[9])
            assert old[6:8] != new[6:8]
            assert new[8] == b"_"


def test_the_comment_says_how():
    found = perturbed(ZUM, tree="random", heads=0.5, labels=1, projective=True, seed=7)
    given = b"--tree random --head-noise 0.5 --label-noise 1 --projective --seed 7"
    assert b"# synmt_perturbed = " + given + b"\n1\tDas" in found


def test_sentences_that_have_no_other_tree_come_out_as_they_are():
    assert perturbed(EMPTY + ONE + FAILED, tree="balanced", heads=1, labels=1) == (
        EMPTY + ONE + FAILED
    )


@pytest.mark.parametrize("tree", [None, *TREES])
@pytest.mark.parametrize("projective", [False, True])
def test_every_tree_is_a_tree_and_its_root_is_the_root(tree, projective):
    found = sentences(perturbed(BANK, tree=tree, heads=0.3, labels=0.3, projective=projective))
    assert len(found) == 400  # the reader refuses what is not a tree
    for sentence in found:
        assert [label == "root" for label in sentence.deprels] == [not h for h in sentence.heads]
    if projective and tree != "shuffled":
        assert all(is_projective([head - 1 for head in one.heads]) for one in found)


def test_shuffled_trees_keep_shape_and_labels():
    def places(sentence):
        """Label and number of dependents of every word, in any order."""
        words = enumerate(sentence.deprels, 1)
        return sorted((label, sentence.heads.count(word)) for word, label in words)

    found = sentences(perturbed(BANK, tree="shuffled"))
    assert list(map(places, found)) == list(map(places, sentences(BANK)))
    assert [one.heads for one in found] != [one.heads for one in sentences(BANK)]


def test_labels_are_never_of_the_same_relation():
    pairs = zip(sentences(BANK), sentences(perturbed(BANK, labels=1)), strict=True)
    for before, after in pairs:
        assert before.heads == after.heads
        for head, old, new in zip(before.heads, before.deprels, after.deprels, strict=True):
            assert (universal(old) == universal(new)) == (head == 0)
            assert new in RELATIONS


def test_a_label_set_is_a_distribution():
    labels = LabelSampler(["obj", "obj", "obj", "nsubj", "root", "_", "det"])
    draw = random.Random(1).random
    found = [labels.other("det:poss", draw) for _ in range(4000)]
    assert set(found) == {"obj", "nsubj"}
    assert found.count("obj") / 4000 == pytest.approx(0.75, abs=0.03)


def test_shares_do_not_change_each_others_draws():
    heads = [one.heads for one in sentences(perturbed(BANK, heads=0.3))]
    assert heads == [one.heads for one in sentences(perturbed(BANK, heads=0.3, labels=0.2))]
    assert heads != [one.heads for one in sentences(perturbed(BANK, heads=0.3, seed=1))]


def test_uas_is_what_the_share_says(run):
    """Each of the 4,000 words keeps its head with chance 0.7: UAS is 70, to within 4 sd of 0.72."""
    done = run("perturb", "--head-noise", "0.3", stdin=BANK)
    assert b" of 4,000 words changed" in done.stderr
    uas, las = re.search(rb"UAS (\d+\.\d\d), LAS (\d+\.\d\d)", done.stderr).groups()
    assert float(uas) == pytest.approx(70, abs=400 * math.sqrt(0.3 * 0.7 / 4000))
    assert uas == las  # labels only change with heads


def test_perturb_and_evaltree_agree(run, tmp_path):
    (tmp_path / "gold").write_bytes(BANK + EMPTY + FAILED + ZUM)
    options = ("--head-noise", "0.3", "--label-noise", "0.2")
    noisy = run("perturb", *options, tmp_path / "gold")
    scored = [
        run("evaltree", tmp_path / "gold", "--get", name, stdin=noisy.stdout).stdout
        for name in ("uas", "las")
    ]
    assert b"UAS %s, LAS %s" % tuple(score.strip() for score in scored) in noisy.stderr


def test_processes_and_files_change_nothing(run, tmp_path):
    rest = treebank(900, 30, seed=2)
    (tmp_path / "a").write_bytes(BANK)
    (tmp_path / "b").write_bytes(rest)
    options = ("--head-noise", "0.2", "--label-noise", "0.1", "--tree", "random", "--seed", "3")
    one = run("perturb", *options, "a", "b", cwd=tmp_path)
    assert one.stdout == run("perturb", *options, "-j", "2", stdin=BANK + rest).stdout
    crlf = (BANK + rest).replace(b"\n", b"\r\n")
    assert one.stdout == run("perturb", *options, stdin=crlf).stdout


@pytest.mark.parametrize("jobs", [1, 2])
def test_sentences_before_a_bad_line_come_out(run, jobs):
    done = run("perturb", "--head-noise", "1", "-j", jobs, stdin=BANK + b"1\tx\n\n")
    assert (done.returncode, done.stdout.count(b"\n\n")) == (65, 400)
    assert done.stderr.startswith(b"synmt perturb: <stdin>:4401: 2 columns, expected 10")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "nothing to change: give --tree, --head-noise, --label-noise or"),
        (["--head-noise", "1.1"], 2, "Invalid value for '--head-noise'"),
        (["--label-noise", "nan"], 2, "Invalid value for '--label-noise'"),
        (["--tree", "bush"], 2, "Invalid value for '--tree'"),
        (["--head-noise", "0.1", "--label-set", "bad"], 2, "--label-set is for --label-noise"),
        (["--label-noise", "0.1", "--label-set", "-"], 2, "only one input can be stdin"),
        (["--tree", "shuffled", "--projective"], 2, "shuffled trees cannot be kept"),
        (["--tree", "balanced", "--projective"], 2, "--projective is for --head-noise and"),
        (["--label-noise", "1", "--label-set", "absent"], 66, "cannot read absent"),
        (["--label-noise", "1", "--label-set", "bad"], 65, "bad:2: a label with white space or"),
        (["--label-noise", "1", "--label-set", "space"], 65, "space:1: a label with white"),
        (["--label-noise", "1", "--label-set", "blank"], 65, "blank:3: a label with white"),
        (["--label-noise", "1", "--label-set", "few"], 65, "few: fewer than two relations"),
    ],
)
def test_mistakes_write_nothing(run, tmp_path, arguments, status, message):
    (tmp_path / "bad").write_bytes(b"obj\nde\tt\n")
    (tmp_path / "space").write_bytes(b"obj \n\nobl\n")
    (tmp_path / "blank").write_bytes(b"obj\nobl\n  \n")
    (tmp_path / "few").write_bytes(b"obj\nobj:x\nroot\n\n_\n")
    done = run("perturb", *arguments, stdin=ZUM, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.decode().startswith(f"synmt perturb: {message}")
    assert done.stderr.count(b"\n") == 1


def test_errors_like_those_of_a_parser(run, tmp_path):
    gold, parsed = tmp_path / "gold", tmp_path / "parsed"
    gold.write_bytes(BANK)
    parsed.write_bytes(perturbed(BANK, heads=0.3, labels=0.1, projective=True))
    arguments = ["perturb", "--confusions", gold, parsed, "--projective", gold]
    done = run(*arguments, "-j", 2)
    plain = run(*arguments, "-v")
    assert done.stdout == plain.stdout
    assert f"--confusions {gold} {parsed}".encode() in plain.stderr  # as one could type it
    assert all(is_projective([h - 1 for h in one.heads]) for one in sentences(done.stdout))
    messages = done.stderr.decode()
    shares = [float(x) for x in re.findall(r"([0-9.]+) % different", messages)]
    uas = float(re.search(r"UAS ([0-9.]+)", messages)[1])
    assert uas == pytest.approx(100 - shares[0], abs=3)
    assert "projective trees: 400 before, 400 after" in messages
    assert b"--confusions --projective --seed 12345\n" in done.stdout
    none = run(*arguments, "--head-noise", 0)  # the first point of a curve
    assert none.stderr.decode().splitlines()[1].startswith("synmt perturb: 0 heads and 0 labels")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--confusions", "gold", "gold"], 65, "gold: no error against gold to learn from"),
        (["--confusions", "gold", "absent"], 66, "cannot read absent"),
        (["--confusions", "gold", "zum"], 65, "zum:1: the text differs from gold:1: "),
        (["--confusions", "gold", "gold", "--tree", "random"], 2, "--confusions is not for --tree"),
        (["--confusions", "gold"], 2, "Option '--confusions' requires 2 arguments"),
    ],
)
def test_what_cannot_be_learned_is_said(run, tmp_path, arguments, status, message):
    (tmp_path / "gold").write_bytes(BANK)
    (tmp_path / "zum").write_bytes(ZUM)
    done = run("perturb", *arguments, stdin=BANK, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.decode().startswith(f"synmt perturb: {message}")


@pytest.mark.parametrize(
    ("option", "parse", "kind"),
    [("--head-noise", "labels", "heads"), ("--label-noise", "heads", "labels")],
)
def test_errors_that_a_parse_has_none_of_are_not_made(run, tmp_path, option, parse, kind):
    for name, head, label in (("gold", 2, "det"), ("heads", 3, "det"), ("labels", 2, "amod")):
        (tmp_path / name).write_text(
            f"1\ta\t_\tX\t_\t_\t{head}\t{label}\t_\t_\n"
            "2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n"
            "3\tc\t_\tX\t_\t_\t2\tobj\t_\t_\n\n"
        )
    done = run("perturb", "--confusions", "gold", parse, option, "0.1", "gold", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (65, b"")
    message = f"synmt perturb: {parse}: no wrong {kind} to learn from"
    assert done.stderr.decode().splitlines()[-1] == message


@pytest.mark.parametrize(("status", "n"), [("ok", 2), ("failed", 0)])
def test_trees_that_say_they_are_ok_are_trees(run, status, n):
    block = f"# synmt_status = {status}\n" + "".join(
        f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{label}\t_\t_\n"
        for number, form, head, label in [(1, "a", 2, "x"), (2, "b", 0, "root")]
    )
    done = run("perturb", "--tree", "random", stdin=f"{block}\n".encode())
    assert f"of {n} words changed" in done.stderr.decode()
