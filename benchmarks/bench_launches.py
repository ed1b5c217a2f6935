"""Launches and synchronisations of an update of every variant on a GPU, counted without one.

    python benchmarks/bench_launches.py

One forward and one backward pass of 6 + 6 layers, fp32, on the pretend device of the tests
(tests/support/pretend.py): operations that start a kernel; attention in torch's fused form is
one, as are dropout and the cell of an LSTM. 64 pairs, sources of 10 to 24 pieces with trees up to
7 arcs deep. The optimizer's launches do not depend on the variant.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support import launches


def main() -> None:
    """Prints a row of Markdown for each variant."""
    print("| variant | launches | times vanilla | synchronisations |\n|---|---|---|---|")
    plain = 0
    for setting in launches.SETTINGS:
        counts = launches.update(setting)
        plain = plain or counts.n_launches
        waits = sorted(counts.synchronisations.items())
        asked = ", ".join(f"{n} {what}" for what, n in waits) or "none"
        ratio = counts.n_launches / plain
        print(f"| {setting} | {counts.n_launches:,} | {ratio:.2f} | {asked} |", flush=True)


if __name__ == "__main__":
    main()
