"""Slots that prefixes share: every token keeps its own, and unused slots are used again."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from synmt_cli.core.decoding.batching.slots import Slots


class Written:
    """Slots, and what a search without them would remember: the tokens of each prefix."""

    def __init__(self, n_beams, dice):
        self.slots, self.dice, self.n_beams, self.n = Slots(in_order=True), dice, n_beams, 0
        self.content = {}  # (source, slot) -> the token there
        self.prefixes = []  # for each place: the number of its source, and K lists of tokens
        self.taken = {}  # source -> its slots, step by step

    def enter(self, places, numbers):
        for place, number in zip(places, numbers, strict=True):
            self.prefixes[place : place + 1] = [(number, [[] for _ in range(self.n_beams)])]
        self.slots.enter(places, len(self.prefixes))

    def step(self):
        found = self.slots.take(self.n_beams)
        for (number, own), slots in zip(self.prefixes, found.tolist(), strict=True):
            assert len(set(slots)) == self.n_beams
            self.taken.setdefault(number, []).append(slots)
            for prefix, slot in zip(own, slots, strict=True):
                self.n += 1
                prefix.append(self.n)
                self.content[number, slot] = self.n

    def check(self):
        seen = self.slots.seen()
        width = max(len(prefix) for _, own in self.prefixes for prefix in own)
        order = self.slots.slots_of_tokens(width)
        for place, (number, own) in enumerate(self.prefixes):
            for k, prefix in enumerate(own):
                here = [self.content[number, slot] for slot in np.flatnonzero(seen[place, k])]
                assert sorted(here) == prefix  # no other prefix wrote over a token
                inside = order[place, k, : len(prefix)]
                assert [self.content[number, slot] for slot in inside] == prefix

    def select(self, places, parents):
        self.slots.select(places, parents)
        old = self.prefixes
        self.prefixes = [
            (old[place][0], [list(old[place][1][k]) for k in row])
            for place, row in zip(places, parents.tolist(), strict=True)
        ]


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
@settings(max_examples=25)
def test_no_token_is_lost_and_others_change_nothing(n_beams, n_sources, seed):
    dice = np.random.default_rng(seed)
    parents = dice.integers(0, n_beams, (40, n_sources, n_beams))
    together = Written(n_beams, dice)
    together.enter(range(n_sources), range(n_sources))
    for t in range(40):
        together.step()
        together.check()
        order = dice.permutation(n_sources)  # sources change their places
        by_number = {number: place for place, (number, _) in enumerate(together.prefixes)}
        places = [by_number[number] for number in order]
        together.select(places, parents[t, order])
    for number in range(n_sources):
        alone = Written(n_beams, dice)
        alone.enter([0], [number])
        for t in range(40):
            alone.step()
            alone.select([0], parents[t, [number]])
        assert alone.taken[number] == together.taken[number]


def test_slots_of_nobody_are_used_again():
    slots = Slots(in_order=False)
    slots.enter([0], 1)
    for _ in range(50):  # all continue the best: it keeps a slot a token, the others lose theirs
        slots.take(4)
        slots.select([0], np.zeros((1, 4), dtype=np.int64))
    assert slots.seen().shape[2] == 64  # 4 * 50 tokens were read


def test_a_new_source_has_no_slots():
    slots = Slots(in_order=False)
    slots.enter([0, 1], 2)
    for _ in range(3):
        slots.take(2)
    slots.enter([1], 2)
    assert slots.take(2).tolist() == [[6, 7], [0, 1]]
    assert slots.seen().sum(2).tolist() == [[4, 4], [1, 1]]
