"""How wide the intervals of differences in BLEU are, by seeds and test sentences.

    python widths.py > widths.tsv

Of the systems in this folder each is compared with a baseline, with every choice of so many seeds.
A width is half of the 95 % interval.
"""

import json
import lzma
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from pathlib import Path

HERE = Path(__file__).parent
# Trained for 12,000 updates; the French sentences are a source of trees/fr-en
LONGER = (
    *("vanilla", "pascal", "dep", "gps", "struct-abs+struct-rel"),
    *("rel", "pascal+rel", "dep+rel", "tags", "sisa"),
)
LONGER_REFERENCE = HERE / "../trees/fr-en/source.txt.xz"
SENTENCES = 250, 500, 1000, 2000, 3000
# Trained for 7,000 updates, with five seeds
FIVE = {"rel": "rel", "dep+rel": "dep+rel", "borrowed": "borrowed-trees/dep+rel"}


def main() -> None:
    """Writes the table."""
    write("updates", "seeds", "sentences", "comparisons", "median", "least", "most")
    for n in SENTENCES:
        with tempfile.TemporaryDirectory() as folder:
            reference = cut(LONGER_REFERENCE, n, Path(folder))
            outputs = {
                f"{name}.{seed}": cut(HERE / f"12000-updates/{name}.{seed}.txt.xz", n, Path(folder))
                for name in LONGER
                for seed in (1, 2, 3)
            }
            for k in (2, 3):
                row(12_000, k, n, widths(reference, LONGER, outputs, 3, k))
    outputs = {
        f"{name}.{seed}": HERE / f"{file}.{seed}.txt.xz"
        for name, file in FIVE.items()
        for seed in range(1, 6)
    }
    for k in (2, 3, 4, 5):
        reference = HERE / "reference.txt.xz"
        row(7_000, k, 1000, widths(reference, [*FIVE], outputs, 5, k))


def cut(file: Path, n: int, folder: Path) -> Path:
    """The first n lines of a file, in a file of that folder."""
    with lzma.open(file, "rt") as lines:
        (folder / file.stem).write_text("".join(islice(lines, n)))
    return folder / file.stem


def widths(
    reference: Path, names: Sequence[str], outputs: dict[str, Path], n_seeds: int, k: int
) -> Iterator[float]:
    """Of each system but the first, with each choice of k of its seeds."""
    for seeds in combinations(range(1, n_seeds + 1), k):
        given = [f"{name}={outputs[f'{name}.{seed}']}" for name in names for seed in seeds]
        command = ["synmt", "score", "-q", "-M", "bleu", "--format", "json", reference, *given]
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        for system in report["systems"][1:]:
            low, high = system["paired"]["bleu"]["ci95"]
            yield (high - low) / 2


def row(updates: int, seeds: int, sentences: int, widths: Iterator[float]) -> None:
    """Writes a row of the table."""
    found = sorted(widths)
    figures = statistics.median(found), found[0], found[-1]
    write(updates, seeds, sentences, len(found), *(f"{one:.2f}" for one in figures))


def write(*columns: object) -> None:
    """Writes a line of the table."""
    sys.stdout.write("\t".join(map(str, columns)) + "\n")


if __name__ == "__main__":
    main()
