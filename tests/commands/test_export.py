"""`synmt export`: CTranslate2 translates as synmt does, and what it cannot hold is refused."""

import json

import pytest

pytest.importorskip("ctranslate2")


def ours(run, record):
    """The log-probability of each target piece, and of the end."""
    import torch

    from synmt_cli.core.model.modifier import Side
    from synmt_cli.core.run.building import load
    from synmt_cli.core.text.vocabulary import BOS, EOS

    model, vocabulary = load(run), run.vocabularies().source
    source, target = (vocabulary.ids(record[name]) for name in ("pieces", "tgt_pieces"))
    with torch.inference_mode():
        memory = model.encode(Side(torch.tensor([[*source, EOS]])))
        states, _ = model.decode(Side(torch.tensor([[BOS, *target]])), memory)
        found = model.logits(states)[0].log_softmax(-1)
    return found[torch.arange(len(target) + 1), torch.tensor([*target, EOS])].tolist()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_it_gives_every_piece_the_same_probability(forked, example_folder, tmp_path, norm):
    import ctranslate2

    from synmt_cli.core.run.directory import Run

    train = ["--train", example_folder / "train.jsonl", "--run", tmp_path / "r", "--preset", "tiny"]
    settings = ["--set", f"model.norm={norm}", "--set", "training.lr=0.05", "-q"]
    assert forked("train", *train, *settings, "--max-steps", 5).returncode == 0
    assert forked("export", "-m", tmp_path / "r", "-o", tmp_path / "ct2").returncode == 0
    records = (example_folder / "test.jsonl").read_bytes().splitlines()[:5]
    records = [json.loads(line) for line in records]
    model = ctranslate2.Translator(str(tmp_path / "ct2"))
    found = model.score_batch([r["pieces"] for r in records], [r["tgt_pieces"] for r in records])
    for record, one in zip(records, found, strict=True):
        assert one.log_probs == pytest.approx(ours(Run(tmp_path / "r"), record), abs=1e-3)


def test_a_variant_is_refused_and_nothing_is_left(forked, example_folder, tmp_path):
    done = forked("export", "-m", example_folder / "runs/pascal", "-o", tmp_path / "ct2")
    assert done.returncode == 78
    assert b"a variant that changes the Transformer, which CTranslate2 lacks" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(forked, example_folder, tmp_path):
    (tmp_path / "mine").write_text("x")
    done = forked("export", "-m", example_folder / "runs/base", "-o", tmp_path)
    assert done.returncode == 73
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_quantized_weights_are_smaller(forked, example_folder, tmp_path):
    for name, options in {"plain": [], "int8": ["--quantization", "int8"]}.items():
        done = forked("export", "-m", example_folder / "runs/base", "-o", tmp_path / name, *options)
        assert done.returncode == 0
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("int8", "plain")]
    assert sizes[0] < 0.6 * sizes[1]
