"""The tables of examples/trees.sh, from the figures in its folder, as Markdown.

    python examples/trees_table.py runs/trees

One table for each direction and seed: BLEU and chrF+ of each test set, p of the paired bootstrap
against the first system; UAS and LAS of the written trees against a parse of the same words. Then
the sign test over all (test set, metric) pairs of all directions and seeds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compare_table import parameters, row, speed


def tables(folder: Path) -> Iterator[str]:
    """The lines of all tables."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(folder.glob("score.*.json")):
        _, direction, name, seed, _ = path.name.split(".")
        found.setdefault((direction, seed), {})[name] = json.loads(path.read_bytes())
    for (direction, seed), sets in found.items():
        yield f"### {direction}, seed {seed}"
        yield ""
        columns = [
            f"{name} (n {scores['n']:,}) {metric}"
            for name, scores in sets.items()
            for metric in ("BLEU", "chrF+", "p")
        ]
        trees = [f"{name} UAS / LAS" for name in sets]
        yield row(["system", "parameters", "tokens/s", *columns, *trees])
        yield row(["---"] * (3 + len(columns) + len(trees)))
        first = next(iter(sets.values()))
        for number, system in enumerate(first["systems"]):
            run = folder / "runs" / ".".join(Path(system["name"]).name.split(".")[:3])
            cells = [run.name.split(".")[1], f"{parameters(run):,}", f"{speed(run):,.0f}"]
            for scores in sets.values():
                cells += of_set(scores["systems"][number])
            yield row(cells + [of_trees(folder / f"trees.{name}.{run.name}.json") for name in sets])
        yield ""
    yield from signs(folder)


def of_set(system: dict[str, Any]) -> list[str]:
    """BLEU, chrF+, and p of both."""
    scores = [f"{system['scores'][metric]['score']:.2f}" for metric in ("bleu", "chrf+")]
    p = [system["paired"].get(metric, {}).get("p") for metric in ("bleu", "chrf+")]
    return [*scores, "-" if None in p else " ".join(f"{one:.3f}" for one in p)]


def of_trees(path: Path) -> str:
    """UAS and LAS, where the system writes trees."""
    if not path.exists():
        return "-"
    scores = json.loads(path.read_bytes())["scores"]
    return " / ".join(f"{scores[name]['f1']:.1f}" for name in ("uas", "las"))


def signs(folder: Path) -> Iterator[str]:
    """The sign test of each system against the first."""
    test = json.loads((folder / "sign.json").read_bytes())
    yield f"### Sign test over {len(test['sets'])} sets x {len(test['metrics'])} metrics"
    yield ""
    yield row(["system", "wins", "losses", "ties", "p"])
    yield row(["---"] * 5)
    for system in test["systems"]:
        name = Path(system["name"]).name.split(".")[1]
        counts = [str(system[key]) for key in ("wins", "losses", "ties")]
        yield row([name, *counts, f"{system['p']:.3g}"])


def main() -> None:
    """Prints the tables."""
    print("\n".join(tables(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
