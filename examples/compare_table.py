"""The table of examples/compare.sh, from the figures in its folder, as Markdown.

    python examples/compare_table.py runs/compare

Means over the seeds, with the standard deviation of BLEU; the difference to the first system
with the same seed; p of `synmt score` for each seed; the difference by source length, a mean
over seeds. Parameters are those of the saved model, tokens per second the median of the reports.
"""

from __future__ import annotations

import json
import math
import statistics
import struct
import sys
from collections import defaultdict
from pathlib import Path


def parameters(run: Path) -> int:
    """How many numbers the saved model has."""
    with open(run / "model.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return sum(math.prod(about["shape"]) for name, about in header.items() if name[0] != "_")


def speed(run: Path) -> float:
    """Target tokens per second, the median of all reports."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rates = [event["tokens_per_second"] for event in map(json.loads, lines) if "lr" in event]
    return statistics.median(rates) if rates else math.nan


def cell(values: list[float], digits: int = 2, sign: str = "") -> str:
    """The mean."""
    return f"{statistics.mean(values):{sign}.{digits}f}" if values else "n/a"


def table(folder: Path, name: str) -> list[str]:
    """The lines of one test set's table."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    buckets: dict[str, int] = {}
    for path in sorted(folder.glob(f"score.{name}.*.json")):
        scores = json.loads(path.read_bytes())
        seed = path.name.split(".")[-2]
        first = scores["systems"][0]["scores"]["bleu"]["score"]
        for system in scores["systems"]:
            variant = Path(system["name"]).name.split(".")[0]
            own = found[variant]
            own["bleu"].append(system["scores"]["bleu"]["score"])
            own["chrf"].append(system["scores"]["chrf"]["score"])
            own["delta"].append(system["scores"]["bleu"]["score"] - first)
            own["p"].append(system["paired"].get("bleu", {}).get("p", math.nan))
            run = folder / "runs" / f"{variant}.{seed}"
            own["parameters"].append(parameters(run))
            own["speed"].append(speed(run))
        for bucket in scores["buckets"]:
            buckets[bucket["name"]] = bucket["n"]
            for system in bucket["systems"]:
                variant = Path(system["name"]).name.split(".")[0]
                if bucket["n"]:
                    found[variant][bucket["name"]].append(system["scores"]["bleu"]["delta"])
    head = ["variant", "parameters", "tokens/s", "BLEU", "chrF", "ΔBLEU", "p of each seed"]
    head += [f"Δ {bucket} (n {n})" for bucket, n in buckets.items()]
    lines = [f"### {name}", "", row(head), row(["---"] * len(head))]
    for variant, own in found.items():
        deviation = statistics.stdev(own["bleu"]) if len(own["bleu"]) > 1 else math.nan
        cells = [
            variant,
            f"{own['parameters'][0]:,}",
            f"{statistics.median(own['speed']):,.0f}",
            f"{cell(own['bleu'])} ± {deviation:.2f}",
            cell(own["chrf"]),
            cell(own["delta"], sign="+"),
            " ".join("-" if math.isnan(p) else f"{p:.3f}" for p in own["p"]),
        ]
        lines.append(row(cells + [cell(own[bucket], 1, "+") for bucket in buckets]))
    return [*lines, ""]


def row(cells: list[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Prints the tables of both test sets."""
    folder = Path(sys.argv[1])
    names = dict.fromkeys(p.name.split(".")[1] for p in sorted(folder.glob("score.*.json")))
    for name in names:
        print("\n".join(table(folder, name)))


if __name__ == "__main__":
    main()
