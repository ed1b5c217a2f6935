"""`synmt linearize` and `synmt delinearize` as a user runs them."""

import io
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sentencepiece_models import OUR_IDS, sentencepiece_model

from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.core.transitions.delinearizer import Broken, Delinearizer
from synmt_cli.core.transitions.linearizer import Linearizer
from synmt_cli.core.trees.heads import ROOT, is_projective
from synmt_cli.core.trees.shapes import random_projective_tree, random_tree
from synmt_cli.formats import conllu
from synmt_cli.io.reading import Source, open_source

EXAMPLE_1 = (
    "John put LEFT-ARC:nsubj the coals LEFT-ARC:det RIGHT-ARC:obj out RIGHT-ARC:compound:prt"
)
EMPTY = "# text = \n# synmt_status = empty\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
FORMS = st.text(st.characters(exclude_characters="\t\n\0", exclude_categories=["Cs"]), min_size=1)
LOOKALIKES = st.sampled_from(
    ["LEFT-ARC:det", "RIGHT-ARC", "ARC:x", "<+>", "\\", "SHIFT", "a b", "_"]
)
SYMBOLS = ("LEFT-ARC:det", "LEFT-ARC:nsubj", "RIGHT-ARC:obj", "RIGHT-ARC:compound:prt", "<+>")


def block(forms, heads, deprels=None, misc=None):
    """CoNLL-U of one sentence; heads are 0-based."""
    deprels = deprels or ["root" if head == ROOT else "dep" for head in heads]
    misc = misc or ["_"] * len(forms)
    columns = zip(forms, heads, deprels, misc, strict=True)
    rows = [
        f"{i}\t{f}\t_\tX\t_\t_\t{h + 1}\t{d}\t_\t{m}" for i, (f, h, d, m) in enumerate(columns, 1)
    ]
    return "\n".join(rows) + "\n\n"


COALS = block(
    ["John", "put", "the", "coals", "out"],
    [1, ROOT, 3, 1, 1],
    ["nsubj", "root", "det", "obj", "compound:prt"],
)
CROSSING = block(["a", "b", "c", "d"], [ROOT, 3, 0, 0])
TWO = "".join(
    f"# sent_id = 3.{k}\n# synmt_line = 3\n" + block(["a", "b"], [ROOT, 0]) for k in (1, 2)
)


def sentence(text):
    (found,) = conllu.read(Source("f", io.BytesIO(text.encode())))
    return found


@pytest.fixture(scope="module")
def vocabulary():
    text = ["John put the coals out .", "the LEFT-ARC:det coals", "don't put out coals ."] * 9
    return Vocabulary(train(text, VocabularySettings(60, symbols=SYMBOLS)))


def test_example_1_of_the_paper(run):
    done = run("linearize", stdin=COALS.encode())
    assert done.stdout.decode() == EXAMPLE_1 + "\n"
    back = run("delinearize", "--format", "conllu", stdin=done.stdout).stdout.decode()
    assert back == "# sent_id = 1\n# text = John put the coals out\n" + COALS.replace("\tX", "\t_")
    assert run("delinearize", stdin=done.stdout).stdout == b"John put the coals out\n"


def test_example_1_in_pieces_of_its_own():
    linearizer = Linearizer()
    linearizer._word_tokens = lambda form, glued: ("Jo@@", "hn") if form == "John" else (form,)
    assert (
        linearizer.linearize([sentence(COALS)]).tokens
        == EXAMPLE_1.replace("John", "Jo@@ hn").split()
    )


@given(
    st.lists(FORMS | LOOKALIKES, min_size=1, max_size=12), st.booleans(), st.booleans(), st.data()
)
@settings(max_examples=150)
def test_words_trees_and_labels_come_back(forms, split, glue, data):
    rng = data.draw(st.randoms(use_true_random=False))
    heads = random_projective_tree(len(forms), rng.random)
    labels = ["root" if head == ROOT else rng.choice(["det", "a b", "x:\\y"]) for head in heads]
    misc = [rng.choice(["_", "SpaceAfter=No"]) for _ in forms]
    linear = Linearizer(split=split, glue=glue).linearize(
        [sentence(block(forms, heads, labels, misc))]
    )
    assert linear.status == "ok"
    line = " ".join(linear.tokens)
    found = Delinearizer().sentence(line.split(" "))
    assert (found.forms, found.heads, found.deprels) == (forms, heads, labels)
    if glue and not any(form[0].isspace() or form[-1].isspace() for form in forms):
        after = [m == "SpaceAfter=No" for m in misc[:-1]]
        assert found.glued == [False, *after]


@given(st.lists(FORMS | LOOKALIKES, min_size=1, max_size=8), st.booleans())
@settings(max_examples=150)
def test_pieces_hold_a_form_character_by_character_or_none(vocabulary, forms, glue):
    heads = [ROOT, *range(len(forms) - 1)]
    misc = ["SpaceAfter=No"] * len(forms)
    linear = Linearizer(vocabulary, glue=glue).linearize([sentence(block(forms, heads, misc=misc))])
    if any(" " in form or "▁" in form for form in forms):
        assert linear.status == "failed"
    elif linear.status == "ok":
        found = Delinearizer(vocabulary).sentence(linear.tokens, escaped=False)
        assert (found.forms, found.heads) == (forms, heads)
        n_symbols = len(forms) - 1 + (len(forms) - 1) * glue
        assert sum(t.startswith("RIGHT-ARC:") or t == "<+>" for t in linear.tokens) == n_symbols


def test_a_vocabulary_that_puts_no_mark_before_a_text_is_the_reason(run, tmp_path):
    lines = ["John put the coals out"] * 9
    (tmp_path / "m.model").write_bytes(
        sentencepiece_model(lines, 24, add_dummy_prefix=False, **OUR_IDS)
    )
    done = run("linearize", "--spm", tmp_path / "m.model", stdin=COALS.encode())
    assert (done.returncode, done.stdout) == (0, b"\n")
    reason = "the vocabulary was trained with --add_dummy_prefix=false: it puts no ▁ before a word"
    assert f"the first of them: <stdin>:1: {reason}\n" in done.stderr.decode()


def test_pieces_show_where_words_begin_and_what_is_glued(vocabulary):
    misc = ["SpaceAfter=No", "_", "SpaceAfter=No", "_"]
    one = sentence(block(["do", "n't", "put", "."], [2, 2, ROOT, 2], misc=misc))
    tokens = Linearizer(vocabulary, glue=True).linearize([one]).tokens
    pieces = [token for token in tokens if "-ARC:" not in token]
    assert [i for i, p in enumerate(pieces) if p == "<+>"] == [pieces.index("<+>"), len(pieces) - 2]
    assert vocabulary.join(tokens).replace("LEFT-ARC:dep", "").replace("RIGHT-ARC:dep", "") == (
        "don't put."
    )


def test_the_words_of_a_multiword_token_are_glued_if_they_spell_it():
    rows = block(["zu", "dem", "do", "n't"], [ROOT, 0, 0, 0]).rstrip("\n").split("\n")
    rows.insert(2, "3-4\tdon't" + "\t_" * 8)
    rows.insert(0, "1-2\tzum" + "\t_" * 7 + "\tSpaceAfter=No")
    linear = Linearizer(glue=True).linearize([sentence("\n".join(rows) + "\n\n")])
    words = [token for token in linear.tokens if "-ARC:" not in token]
    assert words == ["zu", "dem", "<+>", "do", "<+>", "n't"]


def test_a_multiword_token_may_be_one_word():
    rows = block(["da", "zu", "dem", "Haus", "!"], [1, 3, 3, ROOT, 3]).rstrip("\n").split("\n")
    rows.insert(1, "2-3\tzum" + "\t_" * 8)
    rows[4] = rows[4].removesuffix("_") + "SpaceAfter=No"
    linear = Linearizer(glue=True, multiword="token").linearize(
        [sentence("\n".join(rows) + "\n\n")]
    )
    found = Delinearizer().sentence(linear.tokens)
    assert (found.forms, found.text) == (["da", "zum", "Haus", "!"], "da zum Haus!")
    assert found.heads == [1, 2, ROOT, 2]  # what depends on `zu` depends on `zum`


def test_one_line_for_each_line_whatever_it_is(run):
    data = (COALS + EMPTY + TWO + CROSSING + COALS).encode()
    done = run("linearize", stdin=data)
    assert done.stdout.decode().split("\n") == [EXAMPLE_1, "", "", "", EXAMPLE_1, ""]
    assert b"2 of 5 lines failed" in done.stderr
    assert b"<stdin>:11: 2 sentences, but transitions make one tree" in done.stderr
    records = run("linearize", "--format", "jsonl", stdin=data).stdout
    found = [json.loads(line) for line in records.splitlines()]
    assert [one["status"] for one in found] == ["ok", "empty", "failed", "failed", "ok"]
    assert [one["id"] for one in found] == ["1", "2", "3", "4", "5"]
    for back in run("delinearize", stdin=done.stdout), run("delinearize", stdin=records):
        assert back.stdout.count(b"\n") == 5
    trees = run("delinearize", "--format", "conllu", stdin=records).stdout
    assert trees.count(b"# synmt_status") == 3
    assert run("linearize", stdin=trees).stdout == done.stdout


def test_trees_that_are_not_projective(run):
    data = (COALS + CROSSING).encode()
    kept = run("linearize", "--on-nonprojective", "keep", stdin=data)
    assert kept.stdout.split(b"\n")[1] == b"a b RIGHT-ARC:dep c RIGHT-ARC:dep d RIGHT-ARC:dep"
    assert b"1 of 2 trees were not projective and lifted: other heads for 1 word\n" in kept.stderr
    for option in (("--on-nonprojective", "error"), ("--strict",)):
        done = run("linearize", *option, stdin=data)
        assert (done.returncode, done.stdout.decode()) == (65, EXAMPLE_1 + "\n")
        assert done.stderr == b"synmt linearize: <stdin>:7: the tree is not projective\n"


def test_an_error_of_several_processes_is_all_that_is_said(run):
    """Workers that are ended after the error are not reported as killed."""
    data = COALS + CROSSING + "".join(COALS * 20 for _ in range(100))
    for _ in range(5):
        done = run("linearize", "-j", "2", "--strict", stdin=data.encode())
        assert done.returncode == 65
        assert done.stderr == b"synmt linearize: <stdin>:7: the tree is not projective\n"


def test_jobs_change_nothing(run, tmp_path):
    rng = random.Random(1)
    blocks = []
    for n in range(400):
        shape = random_projective_tree if n % 7 else random_tree
        heads = shape(rng.randrange(1, 60), rng.random)
        blocks.append(block([rng.choice("abc") for _ in heads], heads))
    (tmp_path / "f").write_text("".join(blocks))
    one, two = (run("linearize", "-j", n, tmp_path / "f") for n in (1, 2))
    assert (one.stdout, one.stderr) == (two.stdout, two.stderr)
    one, two = (run("delinearize", "-j", n, "--format", "conllu", stdin=one.stdout) for n in (1, 2))
    assert one.returncode == 0
    assert one.stdout == two.stdout


def test_symbols_are_both_directions_of_every_label(run):
    found = (
        run("linearize", "--format", "symbols", "--glue", stdin=COALS.encode())
        .stdout.decode()
        .split()
    )
    labels = ("compound:prt", "det", "nsubj", "obj")
    arcs = [f"{side}-ARC:{label}" for side in ("LEFT", "RIGHT") for label in labels]
    assert found == sorted(["<+>", *arcs])
    split = run(
        "linearize", "--format", "symbols", "--split-transitions", stdin=COALS.encode()
    ).stdout
    assert split.decode().split() == [
        *(f"ARC:{label}" for label in labels),
        "LEFT-ARC",
        "RIGHT-ARC",
    ]
    bad = run(
        "linearize",
        "--format",
        "symbols",
        stdin=block("ab", [ROOT, 0], ["root", "a\u00a0b"]).encode(),
    )
    assert (bad.returncode, bad.stdout) == (65, b"")
    assert "<stdin>:2: label 'a\u00a0b' cannot be of a symbol" in bad.stderr.decode()


@pytest.mark.parametrize(
    ("line", "problem", "repaired"),
    [
        ("a b", "2 words are left without a head", [ROOT, 0]),
        ("a b c RIGHT-ARC:x", "2 words are left without a head", [ROOT, 0, 1]),
        ("LEFT-ARC:x a", "token 1: the arc 'x' finds fewer than two words", [ROOT]),
        ("a b LEFT-ARC:x RIGHT-ARC:y", "token 4: the arc 'y' finds fewer", [1, ROOT]),
        ("a b LEFT-ARC", "token 3: a direction without a label", [1, ROOT]),
        ("a b RIGHT-ARC c LEFT-ARC:x", "token 3: a direction without a label", [2, 0, ROOT]),
        ("a ARC:x", "token 2: the label 'x' has no direction", [ROOT]),
        ("<+> a", "token 1: <+> before the first word", [ROOT]),
        ("a <+>", "token 2: <+> glues nothing", [ROOT]),
        ("a b <+> LEFT-ARC:x", "token 3: <+> glues nothing", [1, ROOT]),
        ("a b <+> LEFT-ARC ARC:x", "token 3: <+> glues nothing", [1, ROOT]),
        ("a b LEFT-ARC ARC:x <+>", "token 5: <+> glues nothing", [1, ROOT]),
        ("LEFT-ARC:x", "token 1: the arc 'x' finds fewer", []),
    ],
)
def test_broken_sequences_are_refused_or_repaired(line, problem, repaired):
    tokens = line.split(" ")
    with pytest.raises(Broken) as found:
        Delinearizer().sentence(tokens)
    assert problem in str(found.value)
    again = Delinearizer(repair=True).sentence(tokens)
    assert again.heads == repaired
    assert again.n_repairs >= 1


def test_a_glue_before_half_an_arc_is_one_repair():
    found = Delinearizer(repair=True).sentence(["a", "b", "<+>", "LEFT-ARC", "c", "RIGHT-ARC:x"])
    assert (found.glued, found.heads) == ([False, False, False], [1, ROOT, 1])
    assert found.n_repairs == 2  # the glue, and the label that LEFT-ARC lacks


@pytest.mark.parametrize("half", [["LEFT-ARC:"], ["LEFT-ARC", "ARC:"]])
def test_half_an_arc_may_end_in_a_colon(half):
    tokens = ["a", "b", *half, "c", "RIGHT-ARC:x"]
    with pytest.raises(Broken, match=f"token {2 + len(half)}: a label is missing after the colon"):
        Delinearizer().sentence(tokens)
    wanted = Delinearizer(repair=True).sentence(["a", "b", "LEFT-ARC", "c", "RIGHT-ARC:x"])
    assert Delinearizer(repair=True).sentence(tokens) == wanted


@given(st.lists(st.sampled_from(["w", "LEFT-ARC:x", "RIGHT-ARC:y"]), max_size=8))
def test_a_repair_changes_as_few_arcs_as_can_be(tokens):
    found = Delinearizer(repair=True).sentence(tokens)
    assert found.forms == ["w"] * tokens.count("w")
    assert is_projective(found.heads) if found.heads else True
    # Like brackets: all words but the first open, arcs close; any without a partner is a change.
    height = n_changes = 0
    for token in tokens:
        if token == "w":
            height += 1
        elif height > 1:
            height -= 1
        else:
            n_changes += 1
    assert found.n_repairs == n_changes + max(height - 1, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a b", "2 words are left without a head, only one is the root"),
        ("a  b LEFT-ARC:x", "token 2 is empty"),
        ("a\tb", r"token 1: 'a\tb' has a TAB, LF or NUL"),
        ("a \\x", "token 2: \\x is none of"),
        ("a b LEFT-ARC:", "token 3: a label is missing"),
        ('{"src":"a","status":"ok"}', "field transitions is missing"),
        ('{"src":"a","transitions":["a",1]}', "field transitions: item 1 is an integer"),
    ],
)
def test_an_error_names_its_line(run, line, message):
    good = '{"src":"a","transitions":["w"]}' if line[0] == "{" else "w"
    done = run("delinearize", stdin=f"{good}\n{line}\n".encode())
    assert (done.returncode, done.stdout) == (65, b"w\n")
    assert done.stderr.decode().startswith(f"synmt delinearize: <stdin>:2: {message}")


def test_repairs_are_counted_and_strict_ends_at_the_first(run):
    done = run("delinearize", "--repair", stdin=b"a b\nc\nRIGHT-ARC:x d e\n")
    assert done.stdout == b"a b\nc\nd e\n"
    assert done.stderr == b"synmt delinearize: warning: 2 of 3 lines repaired, 3 tokens changed\n"
    assert run("delinearize", "--repair", "--strict", stdin=b"a b\n").returncode == 65


def test_failed_and_skipped_records_are_counted_and_strict_ends_at_the_first(run):
    made = b'{"src":"a","transitions":["a"]}\n'
    lost = b'{"src":"b","status":"%b","reason":"two roots"}\n'
    data = made + lost % b"failed" + lost % b"skipped"
    done = run("delinearize", stdin=data)
    assert (done.returncode, done.stdout) == (0, b"a\n\n\n")
    said = b"synmt delinearize: warning: 1 of 3 lines "
    assert done.stderr == said + b"failed\n" + said + b"skipped\n"
    with_tree = lost.replace(b"}", b',"transitions":["b","c","LEFT-ARC:x"]}') % b"failed"
    trees = run("delinearize", "--format", "conllu", stdin=with_tree).stdout
    assert (trees.count(b"# synmt_status = failed\n"), trees.count(b"\n1\t_\t")) == (1, 1)
    assert b"\tx\t" not in trees
    done = run("delinearize", "--strict", stdin=data)
    assert (done.returncode, done.stdout) == (65, b"a\n")
    assert done.stderr == b"synmt delinearize: <stdin>:2: two roots\n"


def test_pieces_need_their_vocabulary(run, vocabulary, tmp_path):
    (tmp_path / "v").write_bytes(vocabulary.to_bytes())
    (tmp_path / "w").write_bytes(train(["a b c d e f"] * 9, VocabularySettings(14)))
    made = run(
        "linearize", "--spm", tmp_path / "v", "--format", "jsonl", stdin=COALS.encode()
    ).stdout
    assert json.loads(made)["vocab"] == vocabulary.fingerprint
    assert run("delinearize", stdin=made).returncode == 78
    assert run("delinearize", "--spm", tmp_path / "w", stdin=made).returncode == 78
    done = run("delinearize", "--spm", tmp_path / "v", stdin=made)
    assert done.stdout == b"John put the coals out\n"


def test_pieces_without_their_vocabulary_are_said_to_be_read_as_words(run, vocabulary, tmp_path):
    """A word may begin with the mark, too, so that a whole tree of such words is no error."""
    (tmp_path / "v").write_bytes(vocabulary.to_bytes())
    made = run("linearize", "--spm", tmp_path / "v", stdin=COALS.encode()).stdout
    assert made.decode().startswith("▁John ▁put ")
    warning = "synmt delinearize: warning: 1 of 2 lines begin with ▁ and were read as words: "
    done = run("delinearize", stdin=b"a \xe2\x96\x81b LEFT-ARC:x\n" + made)
    assert (done.returncode, done.stdout.decode().split("\n")[0]) == (0, "a ▁b")
    assert done.stderr.decode() == f"{warning}if they are pieces, give --spm MODEL\n"
    done = run("delinearize", "--spm", tmp_path / "v", stdin=made)
    assert (done.stdout, done.stderr) == (b"John put the coals out\n", b"")


def test_broken_sequences_of_pieces_are_told_of_their_vocabulary(run):
    broken = "a b LEFT-ARC:x\nRIGHT-ARC:x ▁co al s\n".encode()
    for command, kind, status in (
        ("delinearize", "text", 65),
        ("view", "transitions", 65),
        ("check", "transitions", 1),
    ):
        done = run(command, "--from", kind, stdin=broken)
        said = (done.stdout + done.stderr).decode()
        assert "<stdin>:2: token 1: the arc 'x' finds fewer than two words; if these tokens" in said
        assert said.count("; if these tokens are pieces (▁), --spm MODEL is needed\n") == 1
        assert done.returncode == status
    repaired = run("delinearize", "--repair", stdin=broken)
    assert (repaired.returncode, repaired.stdout.decode()) == (0, "a b\n▁co al s\n")
    assert "1 of 2 lines begin with ▁ and were read as words" in repaired.stderr.decode()


@pytest.mark.parametrize("spm", [False, True])
def test_every_projective_sentence_of_a_treebank_comes_back(data, vocabulary, spm):
    """Its words, heads and labels come back, and its text."""
    linearizer = Linearizer(vocabulary if spm else None, glue=True)
    delinearizer = Delinearizer(linearizer.vocabulary)
    n_trees = n_texts = 0
    with open_source(str(data / "ud" / "en_ewt-dev.conllu.gz")) as source:
        for one in conllu.read(source):
            linear = linearizer.linearize([one])
            heads = [head - 1 for head in one.heads]
            assert (linear.status == "ok") == is_projective(heads)
            if linear.status == "ok":
                found = delinearizer.sentence(linear.tokens, escaped=False)
                assert (found.forms, found.heads, found.deprels) == (one.forms, heads, one.deprels)
                n_trees += 1
                n_texts += found.text == one.comment("text")
    assert n_trees == n_texts == 1970
