"""`synmt featurize --tgt-conllu`: targets that are trees."""

import json
import random

import pytest

from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.core.transitions.linearizer import Linearizer
from synmt_cli.core.trees.heads import is_projective
from synmt_cli.core.trees.shapes import random_tree
from synmt_cli.formats import conllu, record
from synmt_cli.io.reading import open_source

SYMBOLS = ("<+>", "LEFT-ARC:det", "RIGHT-ARC:det", "LEFT-ARC:punct", "RIGHT-ARC:punct")
HUND = (
    "# sent_id = de-1\n# text = Der Hund.\n1\tDer\t_\tX\t_\t_\t2\tdet\t_\t_\n"
    "2\tHund\t_\tX\t_\t_\t0\troot\t_\tSpaceAfter=No\n3\t.\t_\tX\t_\t_\t2\tpunct\t_\t_\n\n"
)
CROSSING = (
    "1\ta\t_\tX\t_\t_\t3\tdep\t_\t_\n2\tb\t_\tX\t_\t_\t4\tdep\t_\t_\n"
    "3\tc\t_\tX\t_\t_\t0\troot\t_\t_\n4\td\t_\tX\t_\t_\t3\tdep\t_\t_\n\n"
)
EMPTY = "# synmt_status = empty\n# text = \n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


def dog(i):
    return f"# sent_id = {i}\n# text = dog\n1\tdog\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("transitions")
    text = ["Der Hund . Hund.", "dog", "a b c"] * 9
    (found / "with").write_bytes(train(text, VocabularySettings(30, symbols=SYMBOLS)))
    (found / "without").write_bytes(train(text, VocabularySettings(22)))
    return found


def records(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def featurize(run, folder, targets, *options, sources=None):
    (folder / "de").write_text(targets)
    n = targets.count("\n\n") if sources is None else 0
    stdin = sources or "".join(dog(i) for i in range(1, n + 1))
    return run("featurize", "--tgt-conllu", folder / "de", *options, stdin=stdin.encode())


def test_targets_are_text_pieces_and_transitions(run, folder):
    (one,) = records(featurize(run, folder, HUND, "--spm", folder / "with", "--glue"))
    vocabulary = Vocabulary.load(str(folder / "with"))
    assert (one["id"], one["src"], one["tgt"]) == ("1", "dog", "Der Hund.")
    assert one["tgt_pieces"] == vocabulary.pieces("Der Hund.")
    arcs = [token for token in one["transitions"] if "-ARC:" in token]
    assert arcs == ["LEFT-ARC:det", "RIGHT-ARC:punct"]
    assert 0 not in vocabulary.ids(one["transitions"])
    assert vocabulary.join(one["transitions"]) == "Der Hund."
    assert one["vocab"] == vocabulary.fingerprint
    assert records(run("featurize", stdin=HUND.encode()))[0]["src"] == one["tgt"]


@pytest.mark.parametrize("target", [HUND, CROSSING, EMPTY])
def test_python_makes_the_same_records_of_trees(run, folder, target):
    command = featurize(run, folder, target, "--spm", folder / "with", "--glue")
    vocabulary = Vocabulary.load(str(folder / "with"))
    featurizer = Featurizer(vocabulary, linearizer=Linearizer(vocabulary, glue=True))
    (folder / "en").write_text(dog(1))
    with open_source(str(folder / "en")) as en, open_source(str(folder / "de")) as de:
        one = featurizer.of_trees(list(conllu.read(en)), "1", list(conllu.read(de)))
    assert record.to_bytes(one) == command.stdout


def test_transitions_become_text_by_the_vocabulary_of_the_target_alone(run, folder):
    (folder / "bytes").write_bytes(train(["Der"], VocabularySettings(270, byte_fallback=True)))
    both = ("--spm", folder / "with", "--tgt-spm", folder / "bytes")
    done = featurize(run, folder, HUND, *both)
    assert "<0x48>" in records(done)[0]["transitions"]  # an H that the source's has a piece for
    found = run("delinearize", "--spm", folder / "bytes", stdin=done.stdout)
    assert (found.returncode, found.stdout) == (0, b"Der Hund .\n")
    found = run("delinearize", "--spm", folder / "with", stdin=done.stdout)
    needed, given = (Vocabulary.load(str(folder / name)).fingerprint for name in ("bytes", "with"))
    assert (found.returncode, found.stdout) == (78, b"")
    assert f"<stdin>:1: transitions of vocabulary {needed}, but " in found.stderr.decode()
    assert found.stderr.decode().endswith(f" is {given}\n")


def test_words_without_a_vocabulary_and_the_arcs_split(run, folder):
    (one,) = records(featurize(run, folder, HUND))
    assert one["transitions"] == ["Der", "Hund", "LEFT-ARC:det", ".", "RIGHT-ARC:punct"]
    (one,) = records(featurize(run, folder, HUND, "--split-transitions"))
    assert one["transitions"][2:4] == ["LEFT-ARC", "ARC:det"]
    assert "tgt_pieces" not in one


def test_a_target_without_transitions_makes_its_segment_failed(run, folder):
    done = featurize(run, folder, HUND + CROSSING + EMPTY + HUND)
    found = records(done)
    assert [one["status"] for one in found] == ["ok", "failed", "ok", "ok"]
    assert found[1]["reason"] == "target: the tree is not projective"
    assert (found[1]["heads"], "transitions" in found[1]) == ([-1], False)
    assert (found[2]["tgt"], found[2]["transitions"]) == ("", [])
    assert f"the first of them: {folder}/de:7: target: the tree is".encode() in done.stderr
    strict = featurize(run, folder, HUND + CROSSING, "--strict")
    assert (strict.returncode, strict.stdout.count(b"\n")) == (65, 1)
    kept = featurize(run, folder, HUND + CROSSING, "--on-nonprojective", "keep")
    assert [one["status"] for one in records(kept)] == ["ok", "ok"]
    assert b"1 of 2 trees were not projective and lifted: other heads for 1 word\n" in kept.stderr
    error = featurize(run, folder, HUND + CROSSING, "--on-nonprojective", "error")
    assert (error.returncode, error.stdout.count(b"\n")) == (65, 1)


def test_transitions_that_are_no_symbols_are_counted(run, folder):
    done = featurize(run, folder, HUND * 2, "--spm", folder / "without")
    assert (
        b"4 transitions of 2 kinds are not in the vocabulary, such as 'LEFT-ARC:det'" in done.stderr
    )
    twice = (
        "1\tDer\t_\tX\t_\t_\t3\tdet\t_\t_\n2\tDer\t_\tX\t_\t_\t3\tdet\t_\t_\n"
        "3\tHund\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    )
    done = featurize(run, folder, twice, "--spm", folder / "without")
    assert b"2 transitions of 1 kinds are not in the vocabulary" in done.stderr
    assert not featurize(run, folder, HUND, "--spm", folder / "with").stderr


@pytest.mark.parametrize(
    ("targets", "problem"),
    [
        (HUND * 2, "2 segments, but the source has 3"),
        (HUND * 4, "4 segments, but the source has 3"),
        (HUND + HUND.replace("\t2\tdet", "\t9\tdet"), "de:9: HEAD 9 is beyond the last word, 3"),
    ],
)
def test_targets_that_do_not_fit_are_refused(run, folder, targets, problem):
    done = featurize(run, folder, targets, sources="".join(map(dog, range(3))))
    assert done.returncode == 65
    assert problem in done.stderr.decode()


def test_lines_of_several_sentences_are_kept_together(run, folder):
    two = "".join(
        f"# sent_id = 1.{k}\n# synmt_line = 1\n{HUND.split(chr(10), 2)[2]}" for k in (1, 2)
    )
    found = records(featurize(run, folder, two + HUND, sources=dog(1) + dog(2)))
    assert [one["status"] for one in found] == ["failed", "ok"]
    assert found[0]["reason"] == "target: 2 sentences, but transitions make one tree"
    found = records(featurize(run, folder, HUND + HUND, sources=two + dog(2)))
    assert [len(one["words"]) for one in found] == [6, 1]


def test_jobs_and_blank_lines_change_nothing(run, folder):
    rng = random.Random(1)
    blocks, n_projective = [], 0
    for _ in range(2500):
        heads = random_tree(rng.randrange(1, 9), rng.random)
        n_projective += is_projective(heads)
        rows = (
            f"{i}\t{rng.choice('abc')}\t_\tX\t_\t_\t{h + 1}\tdet\t_\t_\n"
            for i, h in enumerate(heads, 1)
        )
        blocks.append("".join(rows))
    plain = "\n".join(blocks) + "\n"
    options = "--spm", folder / "with"
    one = featurize(run, folder, plain, *options, "-j", "1", sources="".join(map(dog, range(2500))))
    two = featurize(
        run,
        folder,
        "\n" + plain.replace("\n\n", "\n\n\n"),
        *options,
        "-j",
        "2",
        sources="".join(map(dog, range(2500))),
    )
    assert one.stdout == two.stdout
    assert sum(record["status"] == "ok" for record in records(one)) == n_projective


def test_two_kinds_of_targets_or_two_of_stdin_are_refused(run, folder):
    done = run("featurize", "--tgt", "x", "--tgt-conllu", "y")
    assert (done.returncode, b"are both targets: give one" in done.stderr) == (2, True)
    done = run("featurize", "--tgt-conllu", "-")
    assert (done.returncode, b"only one input can be stdin" in done.stderr) == (2, True)
