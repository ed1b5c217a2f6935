"""The trial of one's own variants: what it refuses, what it finds doubtful, and what passes."""

from __future__ import annotations

import re

import pytest
from support.own_variants import EXAMPLE, changed

from synmt_cli.core.run import trial
from synmt_cli.core.run.config import from_settings, resolve
from synmt_cli.errors import ConfigError

ADDED = '''    def added(self, state: Tensor, site: Site) -> Tensor:
        """(B, H, T, T). Padding is masked later and never matters."""
        return -self.strength * state
'''
EXTRA = "\n    def {}: return {}\n"


def tried(variant="near-parent", *settings):
    return trial.of(resolve(variant, "tiny", from_settings(settings)))


@pytest.mark.parametrize("variant", ["near-parent", "near-parent+rel", "near-parent+bitran"])
@pytest.mark.parametrize("settings", [(), ("model.norm=pre", "near-parent.layer=1")])
def test_the_example_passes(own, variant, settings):
    own(EXAMPLE)
    assert tried(variant, *settings) == []


def test_variants_of_synmt_are_not_tried(own, monkeypatch):
    own(EXAMPLE)
    monkeypatch.delattr(trial, "Transformer")
    assert tried("pascal+rel") == []


@pytest.mark.parametrize(
    ("hook", "result", "message"),
    [
        ("added(self, state, site)", "state[..., :1, :2]", r"added .* \(3, 4, 7, 7\), not \(3, 1"),
        ("added(self, state, site)", "state[None, None]", r"added .* not \(1, 1, 3, 1, 7, 7\)"),
        ("added(self, state, site)", "2", r"added has to return numbers of .*, not int$"),
        ("added(self, state, site)", "state > 1", r"added .* of shape .*, not torch\.bool$"),
        ("added(self, state, site)", "state / 0", r"added has to return finite numbers"),
        ("scores(self, state, site, scores)", "scores[:1]", r"scores .*7\), not \(1, 4, 7, 7\)$"),
        ("scores(self, state, site, scores)", "None", r"scores .*, not NoneType$"),
        ("context(self, s, i, w, context)", "w", r"context .*\(3, 4, 7, 32\), not \(3, 4, 7, 7\)$"),
        ("tokens(self, state, x)", "x[:, :1]", r"tokens .* \(3, 7, 128\), not \(3, 1, 128\)$"),
        ("inputs(self, state, x)", "x.mean(-1)", r"inputs .* \(3, 7, 128\), not \(3, 7\)$"),
        ("positions(self, state, p)", "p[..., :2]", r"positions .* not \(1, 7, 2\)$"),
        ("related(self, state, layer)", "state", r"related .* a Related or None, not Tensor$"),
        ("visible(self, state, n)", "state", r"visible .* bool or None, not torch\.float32$"),
        ("loss(self, state)", "state", r"loss .* shape \(\), not \(3, 1, 7, 7\)$"),
    ],
)
def test_what_attention_cannot_use_is_refused(own, hook, result, message):
    name = hook.partition("(")[0]
    own(changed(ADDED, ("" if name == "added" else ADDED) + EXTRA.format(hook, result)))
    with pytest.raises(ConfigError, match=r"variant near-parent: NearParent\." + message):
        tried()


@pytest.mark.parametrize(
    ("hook", "result"),
    [
        ("added(self, state, site)", "None if site.layer else -self.strength * state"),
        ("positions(self, state, p)", "p.expand(state.size(0), -1, -1)"),
        ("positions(self, state, p)", "0 * p"),
        ("tokens(self, state, x)", "2 * x"),
        ("visible(self, state, n)", "state[:, :, -n:] < 9"),
        ("loss(self, state)", "self.strength.sum()"),
    ],
)
def test_what_a_hook_may_give_passes(own, hook, result):
    name = hook.partition("(")[0]
    own(changed(ADDED, ("" if name == "added" else ADDED) + EXTRA.format(hook, result)))
    assert tried() == []


LEARNS_NOT = r"strength has no gradient, so it does not learn$"
DEPENDS = r"near-parent: the encoding of a sentence depends on what is in its batch$"


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("[layer]", "[]", [r"NearParent\.added is never called, since", LEARNS_NOT]),
        ("def added", "def add", [r"NearParent changes nothing: it has none of", LEARNS_NOT]),
        ("-self.strength *", "-self.strength.detach() *", [LEARNS_NOT]),
        ("-self.strength *", "-(0 * self.strength) *", [LEARNS_NOT]),
        ("j - parent[", "j - parent[:1][", [DEPENDS]),
        (".abs()[:, None]", ".abs()[:, None] * parent.size(1)", [DEPENDS]),
    ],
)
def test_what_is_doubtful_is_said(own, old, new, messages):
    own(changed(old, new))
    found = tried()
    assert len(found) == len(messages)
    for line, message in zip(found, messages, strict=True):
        assert line.startswith("variant near-parent: ")
        assert re.search(message, line)


def test_an_error_of_the_code_itself_goes_on_as_it_is(own):
    own(changed("-self.strength", "-self.strenght"))
    with pytest.raises(AttributeError, match="strenght"):
        tried()
