"""Launches and synchronisations on a GPU, counted without one: updates and search.

    python benchmarks/bench_launches.py

One forward and one backward pass of 6 + 6 layers, fp32, on the pretend device of the tests
(tests/support/pretend.py): operations that start a kernel; attention in torch's fused form is
one, as are dropout and the cell of an LSTM. 64 pairs, sources of 10 to 24 pieces with trees up to
7 arcs deep. The optimizer's launches do not depend on the variant.

Search translates the 64 sources, each up to its own length. The model itself launches one pass of
the encoder, and for each step of the batch, as many as its longest translation has, one of each
decoder layer and of the output. Search adds the rest: choosing tokens, moving prefixes, and the
one copy to the host that is waited for.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support import launches

SEARCHED = ("vanilla", "pascal", "gps", "rel", "gcn")


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
    print("\n| search | steps | launches | times the model's | waits |\n|---|---|---|---|---|")
    for setting in SEARCHED:
        for beam in (1, 4):
            found = launches.searched(setting, beam)
            n, waited = found.counts.n_launches, found.counts.n_synchronisations
            name = f"{setting}, beam {beam}" if beam > 1 else f"{setting}, greedy"
            print(
                f"| {name} | {found.n_steps} | {n:,} | {found.share:.2f} | {waited} |", flush=True
            )


if __name__ == "__main__":
    main()
