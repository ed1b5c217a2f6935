"""The report on a GPU runs in miniature on a CPU, so that no time on a card is lost to its bugs."""

from __future__ import annotations

import re
import sys
import time

import pytest
import torch
from support.program import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu_report


@pytest.mark.long
def test_all_parts_run_in_miniature(tmp_path):
    plan, file = gpu_report.Plan("cpu", True, 60.0), tmp_path / "GPU.md"
    text = gpu_report.report(plan, file, tuple(gpu_report.PARTS), gpu_report.QUICK)
    assert file.read_text() == text
    assert "Failed" not in text
    assert re.findall("^## (.*)$", text, re.M) == [*gpu_report.PARTS]
    assert "ends with the same bits" in text
    assert re.search(r"^\| tiny \| pascal \| [\d,]+ \| [\d.]+ \|", text, re.M)
    for system in ("synmt", "bare loop", "CTranslate2"):
        assert re.search(rf"^\| fp32 \|.*{system}", text, re.M)
    assert re.search(
        r"^\| pascal: 1.2 times vanilla's time \| [\d.]+ \| (not )?met \|$", text, re.M
    )
    assert "| tests pass | | not measured |" in text


def test_the_bare_loop_gives_prefixes_of_each_source():
    """Padding changes nothing, and every prefix has LONGEST + 1 ids."""
    torch.manual_seed(1)
    model = gpu_report.Bare(gpu_report.TINY).eval()
    source = torch.tensor([[5, 6, 3], [7, 3, 1]])
    best = gpu_report.bare_search(model, source, 4)
    assert best.shape == (2, 4, gpu_report.LONGEST + 1)
    greedy = gpu_report.bare_search(model, source[1:, :2], 1)
    alone = gpu_report.bare_search(model, source, 1)[1:]
    assert torch.equal(greedy, alone)


def test_a_part_that_fails_and_the_limit_leave_what_was_measured(tmp_path, monkeypatch):
    def fails(plan):
        yield "before"
        raise RuntimeError("no memory\nmore")

    def ends(plan):
        yield "begun"
        raise gpu_report.TimeUp

    monkeypatch.setattr(gpu_report, "PARTS", {"a": fails, "b": ends, "c": fails})
    file = tmp_path / "GPU.md"
    gpu_report.report(gpu_report.Plan("cpu", True, 60.0), file, ("a", "b", "c"), "")
    expected = "## a before Failed: RuntimeError: no memory ## b begun The time for this was up."
    expected += " ## c before Failed: RuntimeError: no memory"
    assert " ".join(file.read_text().split()) == expected


def test_the_time_of_a_part_ends(tmp_path, monkeypatch):
    def waits(plan):
        yield "begun"
        time.sleep(60)

    monkeypatch.setattr(gpu_report, "PARTS", {"a": waits, "Bars": lambda plan: iter(["done"])})
    monkeypatch.setattr(gpu_report, "AFTERWARDS", {"a": 0.9})
    begin = time.monotonic()
    text = gpu_report.report(gpu_report.Plan("cpu", True, 1.0), None, ("a", "Bars"), "")
    assert time.monotonic() - begin < 30
    expected = "## a begun The time for this was up. ## Bars done"
    assert " ".join(text.split()) == expected


def test_what_does_not_fit_the_card_passes_through_in_parts(monkeypatch):
    plan, tried = gpu_report.Plan("cpu", True, 60.0), []

    class Large:
        def __init__(self, plan, name, size):
            tried.append(plan.micro)

        def warm_up(self):
            if plan.micro != 64:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return "1.0"

    monkeypatch.setattr(gpu_report, "System", Large)
    assert gpu_report.fitting(plan, gpu_report.TINY)[1] == "1.0"
    assert tried == [0, 128, 64]


def test_a_card_that_torch_cannot_use_is_not_taken_for_none(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: Some Card'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu_report.py", "--output", str(tmp_path / "GPU.md")])
    with pytest.raises(SystemExit, match=r"^gpu_report: torch cannot use .*Some Card; torch 2"):
        gpu_report.main()
    assert not (tmp_path / "GPU.md").exists()
