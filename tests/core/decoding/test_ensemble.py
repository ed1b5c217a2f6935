"""Run directories that translate together: what is refused, and which parser they use."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle  # noqa: TID251 - to see that it is refused
import shutil
import struct

import pytest
import torch

from synmt_cli.core.decoding import ensemble
from synmt_cli.core.inspection import model_problems
from synmt_cli.core.run.directory import Run
from synmt_cli.errors import ConfigError, ReadError, SynmtError, Unavailable

CPU = torch.device("cpu")


@pytest.fixture
def copy(example_folder, tmp_path):
    """A copy of the trained run that may be damaged."""
    shutil.copytree(example_folder / "runs" / "pascal", tmp_path / "runs" / "pascal")
    return tmp_path / "runs" / "pascal"


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


def pickled(protocol):
    return pickle.dumps(Bomb(), protocol)


def torch_file(**options):
    file = io.BytesIO()
    torch.save({"a": Bomb()}, file, **options)
    return file.getvalue()


def with_header(model, change):
    n = struct.unpack("<Q", model[:8])[0]
    header = json.loads(model[8 : 8 + n])
    change(header[sorted(header)[1]])
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + model[8 + n :]


WEIGHTS = {
    "empty": lambda model: b"",
    "cut": lambda model: model[:-9],
    "flipped bit": lambda model: model[:-9] + bytes([model[-9] ^ 1]) + model[-8:],
    "pickle 2": lambda model: pickled(2),
    "pickle 4": lambda model: pickled(4),
    "torch zip": lambda model: torch_file(),
    "torch legacy": lambda model: torch_file(_use_new_zipfile_serialization=False),
    "header of 2^63": lambda model: struct.pack("<Q", 2**63) + model[8:],
    "offsets beyond": lambda model: with_header(
        model, lambda tensor: tensor.update(data_offsets=[0, 2**50])
    ),
    "huge shape": lambda model: with_header(
        model, lambda tensor: tensor.update(shape=[2**40, 2**40])
    ),
}


@pytest.mark.parametrize("damage", WEIGHTS)
def test_damaged_weights_are_refused_by_name(copy, damage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = copy / "model.safetensors"
    path.write_bytes(WEIGHTS[damage](path.read_bytes()))
    with pytest.raises(SynmtError, match=r"model\.safetensors"):
        ensemble.load([str(copy)], "best", CPU)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("d_model =", "d_modle =", r"config.toml:\d+: model.d_modle: .*did you mean 'd_model'"),
        ("d_model = 64", "d_model = true", "expected a whole number"),
        ("d_model = 64", "d_model = 32", "model.safetensors: .* has shape"),
        ("d_ff = 128", "d_ff = 99999999999", "must be at most"),
        ("d_ff = 128", "d_ff = 131072", "model.safetensors: .* has shape"),
        ("heads = 2", "heads = 99", "config.toml: pascal.heads must be within"),
        ('variant = "pascal"', 'variant = "pasca"', "config.toml: no variant 'pasca'"),
        ("[model]", "[model", r"config.toml:\d+: not TOML"),
        ("format = 1", "format = 9", "format 9, expected 1"),
        ("fingerprint = ", 'fingerprint = "0" # ', "but the run was trained with 0"),
        ("sha256 = ", "sha265 = ", r"\[parser\] needs file and sha256"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(copy, old, new, message):
    path = copy / "config.toml"
    text = path.read_text()
    assert old in text
    parser = text.index("[parser]") if old == "sha256 = " else 0
    path.write_text(text[:parser] + text[parser:].replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        ensemble.load([str(copy)], "best", CPU)


@pytest.mark.parametrize("name", ["config.toml", "labels.json", "spm.model", "model.safetensors"])
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises((ReadError, Unavailable), match=name):
        ensemble.load([str(copy)], "best", CPU)


def test_a_run_without_a_best_model_says_what_is_there(copy):
    (copy / "model.safetensors").unlink()
    with pytest.raises(ReadError, match="--checkpoint last is there"):
        ensemble.load([str(copy)], "best", CPU)
    assert ensemble.load([str(copy)], "last", CPU).models


def test_an_ensemble_needs_one_vocabulary(copy, run, example_folder):
    run("vocab", "train", "--size", 120, "-o", copy / "spm.model", "train.de", cwd=example_folder)
    digest = hashlib.sha256((copy / "spm.model").read_bytes()).hexdigest()[:16]
    text = (copy / "config.toml").read_text()
    before = text.split('fingerprint = "')[1][:16]
    (copy / "config.toml").write_text(text.replace(before, digest))
    with pytest.raises(ConfigError, match=f"{before}.*{digest}"):
        ensemble.load([str(example_folder / "runs" / "base"), str(copy)], "best", CPU)


def test_a_run_that_was_moved_has_its_parser(copy, tmp_path, monkeypatch):
    """Nothing outside is needed, and the current folder makes no difference."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parser.udpipe").write_bytes(b"another")
    loaded = ensemble.load([str(copy)], "best", CPU)
    assert loaded.parser_loader()() is not None
    assert list(model_problems.of_run(Run(copy))) == []
    (copy / "parser.udpipe").write_bytes(b"another")
    with pytest.raises(Unavailable, match=r"parser.udpipe is another file; .* --parser FILE"):
        loaded.parser_loader()()
    (problem,) = model_problems.of_run(Run(copy))
    assert "parser.udpipe: not the parser of the digest in config.toml" in str(problem)
    (copy / "parser.udpipe").unlink()
    with pytest.raises(Unavailable, match=r"it is not there; .* --parser FILE"):
        loaded.parser_loader()()


def test_a_mean_has_the_parser_of_its_run(run, copy, tmp_path):
    mean, parser = tmp_path / "mean", copy / "parser.udpipe"
    done = run("average", "-m", copy, "best", "-o", mean)
    assert done.returncode == 0, done.stderr.decode()
    assert (mean / "parser.udpipe").read_bytes() == parser.read_bytes()
    parser.write_bytes(b"another")
    done = run("average", "-m", copy, "best", "-o", tmp_path / "again")
    assert done.returncode == 65
    assert b"parser.udpipe: not the parser of the digest in config.toml" in done.stderr
    assert not (tmp_path / "again").exists()


def test_a_linked_parser_is_found_by_its_digest(copy, tmp_path, example_folder, monkeypatch):
    """It is found by an absolute path or next to the run; the current folder does not count."""
    monkeypatch.chdir(example_folder)
    digest = hashlib.sha256((copy / "parser.udpipe").read_bytes()).hexdigest()
    (copy / "parser.udpipe").unlink()
    absolute = str(example_folder / "en.udpipe")
    assert ensemble.find_parser(copy, absolute, digest) == absolute
    with pytest.raises(Unavailable, match="it is not there"):
        ensemble.find_parser(copy, "en.udpipe", digest)
    shutil.copy(absolute, copy.parent)
    assert ensemble.find_parser(copy, "en.udpipe", digest) == str(copy.parent / "en.udpipe")


def test_a_parser_that_cannot_be_read_hides_no_other(copy, example_folder, monkeypatch):
    """A run that was linked to the files of someone else may have such a parser."""
    absolute, beside = str(example_folder / "en.udpipe"), copy.parent / "en.udpipe"
    digest = hashlib.sha256((copy / "parser.udpipe").read_bytes()).hexdigest()
    (copy / "parser.udpipe").rename(beside)

    def sha256(path):
        if path == absolute:
            raise ReadError("cannot read it")
        return digest

    monkeypatch.setattr(ensemble, "sha256", sha256)
    assert ensemble.find_parser(copy, absolute, digest) == str(beside)
    beside.unlink()
    with pytest.raises(Unavailable, match=r"but cannot read it; name a parser by --parser FILE"):
        ensemble.find_parser(copy, absolute, digest)


def test_a_parser_in_a_run_is_never_a_link(copy, example_folder):
    (copy / "parser.udpipe").unlink()
    (copy / "parser.udpipe").symlink_to(example_folder / "en.udpipe")
    with pytest.raises(ReadError, match=r"parser\.udpipe: it is a link"):
        ensemble.load([str(copy)], "best", CPU)


def test_models_without_syntax_need_no_parser(example_folder):
    assert (
        ensemble.load([str(example_folder / "runs" / "base")], "last", CPU).parser_loader() is None
    )


def changed(run, old, new):
    path = run / "config.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_models_of_other_parsers_need_one_by_name(copy, example_folder):
    other = shutil.copytree(copy, copy.parent / "other")
    digest = hashlib.sha256((copy / "parser.udpipe").read_bytes()).hexdigest()
    changed(other, digest, digest[::-1])
    found = ensemble.without_models([str(copy), str(other)])
    advice = "name one by --parser FILE, or give parsed input$"
    with pytest.raises(ConfigError, match=f"models were trained with different parsers; {advice}"):
        found.parser_loader()()
    assert found.parser_loader(str(example_folder / "en.udpipe"))() is not None
    text = (other / "config.toml").read_text()
    (other / "config.toml").write_text(text[: text.index("[parser]")])
    found = ensemble.without_models([str(copy), str(other)])
    with pytest.raises(Unavailable, match=f"other names no parser for text; {advice}"):
        found.parser_loader()()


def test_models_that_read_labels_need_the_same(copy):
    other = shutil.copytree(copy, copy.parent / "other")
    for run in (copy, other):
        changed(run, 'variant = "pascal"', 'variant = "pascal+gps"')
    assert ensemble.without_models([str(copy), str(other)]).encoding.needs
    (other / "labels.json").write_text('["another"]')
    with pytest.raises(ConfigError, match=r"the same labels\.json; they differ in .*, .*/other$"):
        ensemble.without_models([str(copy), str(other)])
