"""Mutations of valid inputs, to fuzz readers and commands with.

SYNMT_FUZZ_ROUNDS is the number of mutations of each kind of input, 300 unless it is set, and 40
where one takes long; `make fuzz` makes it 100,000. SYNMT_FUZZ_SEED, 0 unless it is set, makes
other mutations. No input may take longer than SYNMT_FUZZ_SECONDS, 60 unless it is set, for machines
with other work; `make fuzz` allows 5.
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
FEW = int(os.environ.get("SYNMT_FUZZ_ROUNDS", 40))  # for inputs that take a tenth of a second
SEED = int(os.environ.get("SYNMT_FUZZ_SEED", 0))
LIMIT = float(os.environ.get("SYNMT_FUZZ_SECONDS", 60))


def mutations(data, seed, pieces, rounds=ROUNDS):
    """Yields `rounds` mutations of data. Each has to be handled within LIMIT seconds."""
    rng = random.Random(seed + 1000 * SEED)
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


ODD = (
    None,
    True,
    -1,
    2**63,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
)


def mutated_value(value, rng):
    """A value of JSON or TOML with one part of it replaced, added or left out."""
    if not isinstance(value, dict | list) or not value or not rng.randrange(6):
        return rng.choice(ODD)
    again = value.copy()
    key = rng.choice([*value]) if isinstance(value, dict) else rng.randrange(len(value))
    match rng.randrange(6):
        case 0:
            del again[key]
        case 1 if isinstance(value, dict):
            again[rng.choice(("x", "", "\n", *value))] = again.pop(key)
        case 1:
            again.insert(key, rng.choice((*ODD, *value)))
        case _:
            again[key] = mutated_value(value[key], rng)
    return again
