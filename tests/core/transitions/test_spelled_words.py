"""Words that pieces spell and CoNLL-U cannot hold: pieces of single bytes may spell anything."""

import pytest

from synmt_cli.core.transitions.delinearizer import Broken, Delinearizer


class Bytes:
    """Joins pieces as a vocabulary does, `<0x09>` being a TAB."""

    def join(self, pieces):
        return "".join(pieces).replace("<0x09>", "\t").replace("▁", " ").lstrip(" ")


@pytest.mark.parametrize(
    ("tokens", "form"),
    [
        (["▁a", "<0x09>", "b"], "a b"),
        (["▁a", "\t", "b"], "a b"),  # a TAB is a piece if training text had it
        (["▁", "<0x09>"], "_"),
        (["▁▁"], "_"),
        (["▁a"], "a"),
    ],
)
def test_what_no_word_may_hold_is_refused_or_repaired(tokens, form):
    repaired = Delinearizer(Bytes(), repair=True).sentence(tokens, escaped=False)
    assert repaired.forms == [form]
    assert repaired.n_repairs == (form != "a")
    if form != "a":
        with pytest.raises(Broken, match=r"which is not a word of CoNLL-U|has a TAB"):
            Delinearizer(Bytes()).sentence(tokens, escaped=False)
