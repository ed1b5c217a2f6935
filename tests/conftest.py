"""Fixtures and settings for every test."""

from __future__ import annotations

import fcntl
import os
import shutil
from functools import partial
from itertools import product

import hypothesis
import pytest
from support import program
from support.forked import Forked
from support.program import DATA, ENVIRONMENT, synmt

for name in {"TORCHINDUCTOR_CACHE_DIR", "CUDA_VISIBLE_DEVICES"} & ENVIRONMENT.keys():
    os.environ[name] = ENVIRONMENT[name]
os.environ.pop("SYNMT_VARIANTS", None)  # a developer's own variants are not those of synmt
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # a test's make takes nothing from `make test`
    os.environ.pop(name, None)


# A busy disk or another process can slow an example down; that is not a failure.
hypothesis.settings.register_profile(
    "synmt", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("synmt")


def pytest_collection_modifyitems(items):
    """The file that takes longest comes first, so that two workers end at the same time.

    While its worker makes the files of examples, the other one has tests that need none.
    """
    items.sort(key=lambda item: (item.path.name != "test_docs.py", item.path.parent.name != "io"))


@pytest.fixture(scope="session")
def forked():
    """The program in forks of one process that has loaded torch; see support/forked.py."""
    with Forked() as made:
        yield made


@pytest.fixture
def run(forked):
    """`run("featurize", "-", stdin=b"...")` gives stdout, stderr (bytes) and returncode.

    With `env`, the program starts as a process of its own, as for a user.
    """

    def start(*arguments, env=None, **how):
        return synmt(*arguments, env=env, **how) if env else forked(*arguments, **how)

    return start


@pytest.fixture(scope="session")
def data():
    """The folder of real corpora; skips where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no data at {DATA}; set SYNMT_DATA")
    return DATA


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Each kind of device in turn; skips where there is none."""
    import torch

    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return request.param


# --- files that examples in help, man pages and README may use -----------------------------


@pytest.fixture
def shell(forked):
    """`shell("synmt parse ... | head", folder)` runs a line of shell in a folder."""
    return partial(program.shell, timeout=300, first=forked.folder)


EXAMPLE_FILES = """
synmt synth -n 200 --seed 1 --out-template train.{ext}
synmt synth -n 40 --seed 2 --out-template dev.{ext}
synmt synth -n 16 --seed 3 --out-template test.{ext}
synmt parser train --tokenizer-options 'epochs=1;segment_size=10' --dev test.en.conllu \\
  -o en.udpipe dev.en.conllu
synmt vocab train --size 250 -o spm.model train.en train.de
for s in train dev test; do
  synmt featurize --spm spm.model --tgt $s.de -o $s.jsonl $s.en.conllu
done
head -n 12 dev.jsonl > few.jsonl  # each validation and tuning translates them
mv few.jsonl dev.jsonl
common="--train train.jsonl --dev dev.jsonl --parser en.udpipe --preset tiny --max-steps 3"
common="$common --set training.save_every=1 --set model.d_model=64 --set model.d_ff=128"
synmt train $common --run runs/base
synmt train $common --variant pascal --run runs/pascal
synmt linearize --format symbols --glue train.de.conllu dev.de.conllu > symbols
synmt vocab train --size 290 --symbols symbols -o de.trees.model train.en train.de
synmt featurize --spm de.trees.model --tgt-conllu train.de.conllu --glue -o de.trees.jsonl \\
  train.en.conllu
synmt train --variant linearized --preset tiny --max-steps 3 --train de.trees.jsonl \\
  --run runs/trees --set model.decoder_layers=2 --set model.d_model=64 --set model.d_ff=128
cp train.en all.en
cp train.de all.de
cp test.de ref.de
sed 's/ist/war/' test.de > base.de
cp base.de vanilla.de
sed 's/der/die/' test.de > base.2.de
sed 's/ein/kein/' test.de > pascal.2.de
cp test.de pascal.de
"""


@pytest.fixture(scope="session")
def example_folder(tmp_path_factory, forked):
    """A folder with every file that the examples in help and man pages name."""
    folder = tmp_path_factory.mktemp("examples")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _prepare(EXAMPLE_FILES, folder, forked)
        return folder
    made = tmp_path_factory.getbasetemp().parent / "examples"  # by the first worker, for all
    with open(f"{made}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            (unfinished := made.with_suffix(".part")).mkdir()
            _prepare(EXAMPLE_FILES, unfinished, forked)
            unfinished.rename(made)
    return shutil.copytree(made, folder, dirs_exist_ok=True)


def _prepare(script, folder, forked):
    """Runs a script in a folder and checks that its commands leave no temporary file."""
    (temporary := folder / ".tmp").mkdir()
    done = program.shell(f"export TMPDIR={temporary}\n{script}", folder, first=forked.folder)
    assert done.returncode == 0, done.stderr.decode()
    temporary.rmdir()  # fails unless the folder is empty


@pytest.fixture(scope="session")
def tiny_treebank():
    """Gold CoNLL-U of 96 sentences such as `The dog sees the dog.`, as bytes."""
    blocks = []
    nouns, verbs = (
        ("dog", "cat", "bird", "man", "woman", "child"),
        ("sleeps", "sees", "likes", "is"),
    )
    for determiner, noun, verb, with_object in product(("The", "A"), nouns, verbs, (True, False)):
        words = [
            (determiner, "DET", 2, "det"),
            (noun, "NOUN", 3, "nsubj"),
            (verb, "VERB", 0, "root"),
        ]
        if with_object:
            words += [("the", "DET", 5, "det"), (noun, "NOUN", 3, "obj")]
        words.append((".", "PUNCT", 3, "punct"))
        for i, (form, upos, head, deprel) in enumerate(words, 1):
            misc = "SpaceAfter=No" if i == len(words) - 1 else "_"
            row = (i, form, form.lower(), upos, "_", "_", head, deprel, "_", misc)
            blocks.append("\t".join(map(str, row)) + "\n")
        blocks.append("\n")
    return "".join(blocks).encode()


@pytest.fixture(scope="session")
def tiny_udpipe(tiny_treebank, tmp_path_factory):
    """A UDPipe model that knows the sentences of `tiny_treebank`; takes a second or two."""
    path = tmp_path_factory.mktemp("udpipe") / "tiny.udpipe"
    options = {
        "--tokenizer-options": "dimension=16;epochs=1;batch_size=10;segment_size=10",
        "--tagger-options": "iterations=2;guesser_enrich_dictionary=0",
        "--parser-options": "iterations=2;hidden_layer=20;structured_interval=0",
    }
    flat = [text for option in options.items() for text in option]
    done = synmt("parser", "train", "-", "-o", path, *flat, stdin=tiny_treebank)
    assert done.returncode == 0, done.stderr
    return path
