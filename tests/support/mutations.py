"""Mutations of valid inputs, to fuzz readers and commands with.

SYNMT_FUZZ_ROUNDS is the number of mutations of each kind of input, 300 unless it is set; `make
fuzz` makes it 10,000. The seeds are fixed. No input may take longer than LIMIT seconds.
"""

import os
import random
import time

from synmt_cli.errors import DataError

PIECES = [
    b"\t",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    b"#",
    b"-",
    b".",
    b"0",
    b"1",
    b"9" * 12,
    b"_",
    b" ",
]
JSON_PIECES = [
    b'"',
    b",",
    b":",
    b"[",
    b"]",
    b"{",
    b"}",
    b"-1",
    b"true",
    b"null",
    b"1.0",
    b"\\u",
    b"\xff",
]


ROUNDS = int(os.environ.get("SYNMT_FUZZ_ROUNDS", 300))
LIMIT = 5  # seconds


def mutations(data, seed, pieces, rounds=ROUNDS):
    """Yields `rounds` mutations of data. Each has to be handled within LIMIT seconds."""
    rng = random.Random(seed)
    for _ in range(rounds):
        one = mutated(data, rng, pieces)
        start = time.monotonic()
        yield one
        assert time.monotonic() - start < LIMIT, one


def share_refused(data, seed, pieces, read, rounds=ROUNDS):
    """The share of mutations for which `read` raises a DataError; another error is raised."""
    n_refused = 0
    for one in mutations(data, seed, pieces, rounds):
        try:
            read(one)
        except DataError:
            n_refused += 1
    return n_refused / rounds


def mutated(data, rng, pieces):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        match rng.randrange(5):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randint(1, 30)]
            case 2:
                data[at:at] = rng.choice(pieces)
            case 3:
                other = rng.randrange(len(data))
                data[at:at] = data[other : other + rng.randint(1, 80)]
            case 4:
                data[at : at + 1] = rng.choice(pieces)
    return bytes(data)
