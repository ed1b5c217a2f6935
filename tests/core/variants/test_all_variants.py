"""Properties of every variant, and of combinations of them."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from support.decoding import Stepping
from support.models import logits, make, side, small
from support.parsed_sources import IDS, LABELS, NEEDED, OTHERS, TREES, source
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from synmt_cli.core.analysis.witness import witnessed
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.decoding.scorers.cached import CachedScorer
from synmt_cli.core.model.attention import Tokens
from synmt_cli.core.model.layers import losses
from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.trees.features import PieceTree
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.core.variants.table import VARIANTS
from synmt_cli.errors import UsageError
from synmt_cli.formats.record import Record

N_LABELS = 8  # more than the trees have: what stands in padding may be any of them
MODELS = {  # variants: sizes and options other than the defaults
    # Variants that read the target's tree need more than a source: see test_target_trees.py.
    **{n: {} for n, variant in VARIANTS.items() if not variant.data and not variant.transitions},
    "dep+rel": {"norm": "pre"},
    "struct-abs+struct-rel": {"norm": "pre", "struct-abs": {"fuse": "add"}},
    "pascal+gps": {"gps": {"layer": "all"}},
    "rel+struct-abs+struct-rel": {"rel": {"stack": "encoder", "clip": 2}},
    "sisa+gps": {"norm": "pre"},
    "pascal+rel+dep+tags": {"rel": {"clip": 1}, "dep": {"clip": 1}, "tags": {"width": 4}},
    "struct-abs+vanilla": {"positions": "none"},
    "gps+sisa": {"sisa": {"layer": 1, "weight": 0.5}, "tied": "none"},
}
SENTENCE = (IDS[0], TREES[0])
PAIRS = [*zip(IDS, TREES, strict=True), *OTHERS]
TARGETS = [[2, 5, 6, 7], [2, 9], [2, 4, 4, 4, 4, 4, 8], [2, 10, 9], [2, 7], [2, 5, 5]]
EXACT = {"rtol": 0, "atol": 1e-12}
each_model = pytest.mark.parametrize("model", MODELS, indirect=True)


def split(changes):
    """Changes of the size, and options of variants."""
    options = {name: value for name, value in changes.items() if name in VARIANTS}
    return {name: value for name, value in changes.items() if name not in VARIANTS}, options


def build(name, **more):
    sizes, options = split(MODELS[name])
    size = small(**{**sizes, **more})
    setting = StackSpec(size, size.encoder_layers, N_LABELS)
    one = plan(name)
    return make(size, one.encoder(setting, options), one.decoder(setting, options))


@pytest.fixture
def model(request):
    return build(request.param)


def batch(pairs, **options):
    ids, trees = zip(*pairs, strict=True)
    return source(list(ids), list(trees), **options)


def real(memory, side):
    return memory.states if side.pad is None else memory.states[~side.pad]


# A sentence is the same alone, in any batch, and at any place in it.


@each_model
@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_sentence_encodes_the_same_in_any_batch(model, place):
    for sentence in PAIRS:
        others = [pair for pair in PAIRS if pair is not sentence]
        alone = model.encode(batch([sentence])).states[0]
        whole = batch([*others[:place], sentence, *others[place:]])
        found = model.encode(whole).states[place, : len(alone)]
        torch.testing.assert_close(found, alone, **EXACT)


@each_model
@pytest.mark.parametrize("width", [7, 30])
def test_the_width_of_padding_never_matters(model, width):
    alone = model.encode(batch([SENTENCE])).states[0]
    found = model.encode(batch([SENTENCE], width=width)).states[0, : len(alone)]
    torch.testing.assert_close(found, alone, **EXACT)


@each_model
@pytest.mark.parametrize("fill", [1, 7])
def test_what_stands_in_padding_never_matters(model, fill):
    """The padding is filled with ids, with features, and with the paths of other words."""
    clean, dirty = batch(PAIRS), batch(PAIRS, fill=fill)
    dirty.features["path"].masked_fill_(dirty.pad, len(dirty.paths.labels) - fill)
    one, other = model.encode(clean), model.encode(dirty)
    torch.testing.assert_close(real(other, clean), real(one, clean), **EXACT)
    torch.testing.assert_close(dict(other.losses), dict(one.losses), rtol=1e-6, atol=0)
    targets = side(TARGETS)
    found = logits(model, dirty, side(TARGETS, fill=fill))[~targets.pad]
    torch.testing.assert_close(found, logits(model, clean, targets)[~targets.pad], **EXACT)


@each_model
@torch.no_grad()
def test_tokens_encode_the_same_without_their_padding(model):
    sources = batch(PAIRS, width=16)
    lengths = (~sources.pad).sum(1).tolist()
    found = model.encoder.forward_unpadded(
        sources, Tokens.of_lengths(lengths, 16, sources.ids.device)
    )
    torch.testing.assert_close(found, real(model.encode(sources), sources), **EXACT)


@each_model
def test_a_mask_without_padding_is_no_mask(model):
    bare = batch([SENTENCE])
    pad = torch.zeros_like(bare.ids, dtype=torch.bool)
    masked = Side(bare.ids, pad, bare.features, bare.paths)
    torch.testing.assert_close(model.encode(masked).states, model.encode(bare).states, **EXACT)


@each_model
def test_two_batches_may_be_encoded_at_once(model):
    """What belongs to a batch is in its state, never on the modifier."""
    encoder, first, second = model.encoder, batch(PAIRS[:3]), batch(PAIRS[3:])
    before = model.encode(first)
    active = encoder.prepare(first)
    model.encode(second)
    encoder.prepare(second)
    x = encoder.embedding(first.ids, active)
    for layer in encoder.layers:
        x = layer(x, before.allowed, layer.attention.modified_by(active))
        model.encode(second)
    assert torch.equal(encoder.norm(x), before.states)
    assert losses(active) == before.losses


@each_model
def test_single_precision_keeps_a_sentence_within_rounding(model, device):
    model = model.float().to(device)
    alone = model.encode(batch([SENTENCE], device=device)).states[0]
    found = model.encode(batch([*OTHERS, SENTENCE], device=device)).states[3, : len(alone)]
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-4)


# Attention has a fused form, and one in steps, in which a witness sees the scores.


def outcome(model, witness):
    """Encoder states, decoder states and the gradient of both, for attention in steps or fused."""
    model.zero_grad(set_to_none=True)
    target = side([[*row, 10] for row in TARGETS])
    first, second = (witnessed(s) if witness else nullcontext() for s in model_stacks(model))
    with first, second:
        memory = model.encode(batch(PAIRS))
        states, _ = model.decode(target, memory)
    (states.square().sum() + sum(memory.losses.values())).backward()
    return (
        memory.states,
        states,
        *(p.grad.clone() for p in model.parameters() if p.grad is not None),
    )


def model_stacks(model):
    return model.encoder, model.decoder


@each_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_attention_is_attention_in_steps(model, dtype):
    if model.rereads:
        pytest.skip("a witness sees whole targets")
    model = model.to(dtype)
    bounds = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else EXACT
    for one, other in zip(outcome(model, False), outcome(model, True), strict=True):
        scale = max(1.0, one.abs().max().item())
        torch.testing.assert_close(one / scale, other / scale, **bounds)


@pytest.mark.parametrize("name", ["pascal", "gps", "dep+rel", "pascal+rel+dep+tags"])
def test_scores_of_attention_in_steps_are_of_single_precision_in_bf16(name):
    seen, model = [], build(name).float()
    with (
        witnessed(model.encoder, lambda _, x: seen.append(x), lambda _, x: seen.append(x)),
        torch.autocast("cpu", dtype=torch.bfloat16),
    ):
        model.encode(batch(PAIRS))
    assert len(seen) == 4
    assert all(x.dtype == torch.float32 for x in seen)
    assert any(not torch.equal(x, x.bfloat16().float()) for x in seen)


# Segments without a tree are translated, too.


@each_model
@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_segment_without_a_tree_encodes(model, n):
    """Each piece stands for itself, alone and next to sentences with trees."""
    bare = [*[4, 7, 9, 8][:n], 3], PieceTree([], [], [0], [-1] * n)
    alone = model.encode(batch([bare])).states[0]
    assert alone.isfinite().all()
    found = model.encode(batch([SENTENCE, bare])).states[1, : n + 1]
    torch.testing.assert_close(found, alone, **EXACT)


@each_model
def test_a_variant_asks_for_all_that_it_reads(model):
    """It asks for `needs`; in translation, for those of them that are not for a loss alone."""
    modifiers = model.encoder.modifiers
    needs = {name for modifier in modifiers for name in modifier.needs}
    whole, few = batch(PAIRS), batch(PAIRS, needs=sorted(needs))
    one, other = model.encode(whole), model.encode(few)
    assert torch.equal(one.states, other.states)
    assert set(one.losses) == set(other.losses) == {m.name for m in modifiers if m.learns}
    read = {name for m in modifiers for name in m.needs if name not in m.learns}
    fewer = model.encode(batch(PAIRS, needs=sorted(read)))
    assert torch.equal(fewer.states, one.states)
    assert not fewer.losses
    assert needs <= set(NEEDED)


def test_features_of_records_are_those_of_trees():
    """They are made as in training: records, labels, arrays, a batch of some rows."""
    encoding, records = Encoding(NEEDED, Labels(LABELS)), []
    for tree in TREES:
        pieces = ["x"] * len(tree.piece_word)
        given = {"heads": tree.heads, "deprels": tree.deprels, "sents": tree.sents}
        words = ["x"] * len(tree.heads)
        records.append(
            Record("1", "x", words=words, pieces=pieces, piece_word=tree.piece_word, **given)
        )
    values = encoding.ragged([encoding.values(record) for record in records])
    rows = np.array([2, 0, 1])
    found = encoding.side(Ragged.of(IDS, np.int64), values, rows)
    expected = source([IDS[i] for i in rows], [TREES[i] for i in rows])
    assert torch.equal(found.pad, expected.pad)
    for name in NEEDED:
        one, other = found.features[name], expected.features[name]
        if name == "path":
            one, other = (_read(side) for side in (found, expected))
            assert one == other
        else:
            assert torch.equal(one[~found.pad].double(), other[~found.pad].double()), name


def _read(side):
    paths = side.paths
    labels, shorter = paths.labels.tolist(), paths.shorter.tolist()

    def recovered(row):
        return [] if row == 0 else [*recovered(shorter[row]), labels[row]]

    return [recovered(row) for row in side.features["path"][~side.pad].tolist()]


# Training.


@each_model
@pytest.mark.parametrize("training", [True, False])
def test_gradient_reaches_every_parameter(model, training):
    model.train(training)
    torch.manual_seed(6)
    memory = model.encode(batch(PAIRS))
    states, others = model.decode(side([[*row, 10] for row in TARGETS]), memory)
    assert not others
    loss = model.logits(states).square().sum() + sum(memory.losses.values())
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@each_model
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_half_precision_stays_finite_and_close(model, half, device):
    model = model.float().to(device)
    for parameter in model.parameters():  # as small as training begins: scores of about 1
        parameter.data *= 0.5
    both = batch(PAIRS, device=device)
    expected = real(model.encode(both), both)
    with torch.autocast(device, dtype=half):
        memory = model.encode(both)
    found = real(memory, both)
    assert found.isfinite().all()
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.2)
    assert all(loss.isfinite() for loss in memory.losses.values())


@each_model
def test_a_whole_model_may_be_of_half_precision(model):
    both = batch(PAIRS)
    found = model.to(torch.bfloat16).encode(both)
    assert found.states.dtype == torch.bfloat16
    assert real(found, both).isfinite().all()


# The decoder.


@pytest.mark.parametrize("name", [n for n, variant in VARIANTS.items() if not variant.decoder])
def test_variants_of_the_source_leave_the_decoder_alone(name):
    size = small()
    assert plan(name).decoder(StackSpec(size, size.decoder_layers, N_LABELS), {}) == []


@pytest.mark.parametrize("name", MODELS)
def test_decoders_without_modifiers_are_the_plain_one(name):
    model, plain = build(name), make(small(**split(MODELS[name])[0]))
    memory, target = plain.encode(batch(PAIRS)), side(TARGETS)
    plain.load_state_dict(model.state_dict(), strict=False)
    same = torch.equal(model.decode(target, memory)[0], plain.decode(target, memory)[0])
    assert same == (not len(model.decoder.modifiers))
    options = split(MODELS[name])[1]
    in_decoder = [v.name for v in plan(name).variants if v.decoder]
    wanted = [one for one in in_decoder if options.get(one, {}).get("stack") != "encoder"]
    assert [modifier.name for modifier in model.decoder.modifiers] == wanted


def forced(model, source, prefixes):
    """Log-probabilities after each whole prefix, (B, K, V), by teacher forcing."""
    columns = []
    for k in range(prefixes.size(1)):
        last = logits(model, source, Side(prefixes[:, k]))[:, -1]
        columns.append(last.log_softmax(-1).float())
    return torch.stack(columns, 1)


@pytest.mark.parametrize("name", ["rel", "dep+rel", "pascal+rel+dep+tags", "sisa+gps"])
@torch.inference_mode()
def test_steps_equal_teacher_forcing_beyond_the_clipping_distance(name):
    model, sources = build(name), batch(PAIRS[:3])
    scorer, prefixes = Stepping(CachedScorer(model), model, sources), torch.full((3, 1, 1), 2)
    torch.manual_seed(9)
    for t in range(40):  # more than rel's 16 and than the room there is at first
        found = scorer.step(prefixes)
        if t in (0, 1, 2, 15, 16, 17, 31, 32, 39):
            torch.testing.assert_close(found, forced(model, sources, prefixes), rtol=0, atol=1e-5)
        prefixes = torch.cat((prefixes, torch.randint(4, 11, (3, 1, 1))), -1)


@pytest.mark.parametrize("name", ["rel", "pascal+rel+dep+tags"])
@torch.inference_mode()
def test_hypotheses_may_branch_swap_and_leave(name):
    model, sources = build(name), batch(PAIRS[:3])
    scorer, prefixes = Stepping(CachedScorer(model), model, sources), torch.full((3, 3, 1), 2)
    torch.manual_seed(9)
    moves = [
        ([0, 1, 2], [[0, 0, 0]] * 3),
        ([0, 1, 2], [[2, 0, 0], [1, 1, 1], [0, 1, 2]]),
        ([0, 2], [[0, 1, 2], [2, 1, 0]]),
        ([1], [[2, 1, 0]]),
    ]
    for kept, parents in moves:
        found = scorer.step(prefixes)
        torch.testing.assert_close(found, forced(model, sources, prefixes), rtol=0, atol=1e-5)
        stay, parents = torch.tensor(kept), torch.tensor(parents)
        scorer.select(kept, len(prefixes), parents)
        features = {key: value[stay] for key, value in sources.features.items()}
        sources = Side(sources.ids[stay], sources.pad[stay], features, sources.paths)
        new = torch.randint(4, 11, (*parents.shape, 1))
        prefixes = torch.cat((prefixes[stay[:, None], parents], new), -1)
    found = scorer.step(prefixes)
    torch.testing.assert_close(found, forced(model, sources, prefixes), rtol=0, atol=1e-5)


# Combinations, and their order.


@pytest.mark.parametrize("heads", [1, 3, [2]])
def test_pascal_never_scales_the_head_that_sisa_makes_a_parser(heads):
    setting = StackSpec(small(), 2, N_LABELS)
    with pytest.raises(UsageError, match=r"pascal would scale head 0 of layer 0, which sisa"):
        plan("sisa+pascal").encoder(setting, {"pascal": {"heads": heads}})
    with pytest.raises(UsageError, match=r"sisa computes .* did to them: choose another layer$"):
        plan("pascal+sisa").encoder(setting, {"pascal": {"heads": heads}})
    for other in ({"pascal": {"heads": [0, 3]}}, {"sisa": {"layer": 1}}):
        assert len(plan("sisa+pascal").encoder(setting, other)) == 2


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ("rel+sisa", {}),
        ("dep+sisa", {}),
        ("struct-rel+sisa", {}),
        ("gps+sisa", {}),
        ("tags+rel+struct-abs+sisa", {}),
        ("gps+sisa", {"gps": {"layer": "all"}, "sisa": {"layer": 1}}),
    ],
)
def test_scores_that_would_be_thrown_away_are_refused(names, options):
    first = names.split("+")[-2] if "tags" not in names else "rel"
    setting = StackSpec(small(), 2, N_LABELS)
    with pytest.raises(UsageError, match=rf"^sisa .*{first}.* name sisa first"):
        plan(names).encoder(setting, options)
    turned = "+".join(reversed(names.split("+")))
    assert plan(turned).encoder(setting, options)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ("struct-abs+sisa", {}),
        ("tags+sisa", {}),
        ("pascal+sisa", {"sisa": {"layer": 1}}),
        ("gps+sisa", {"gps": {"layer": 1}}),
    ],
)
def test_what_does_not_touch_the_same_scores_combines_in_any_order(names, options):
    for expression in (names, "+".join(reversed(names.split("+")))):
        assert len(plan(expression).encoder(StackSpec(small(), 2, N_LABELS), options)) == 2


@pytest.mark.parametrize("names", ["multitask+mixed-encoder", "mixed-encoder+pascal+multitask"])
def test_two_ways_to_make_records_are_refused(names):
    both = r"(multitask and mixed-encoder|mixed-encoder and multitask)"
    with pytest.raises(UsageError, match=rf"^{both} do not combine: each makes its own records$"):
        plan(names)


@pytest.mark.parametrize("names", ["multitask+linearized", "gps+gcn+multitask"])
def test_records_without_transitions_are_not_for_models_that_write_them(names):
    with pytest.raises(UsageError, match="records have no transitions"):
        plan(names)
    assert plan(names.replace("multitask", "mixed-encoder")).transitions


@pytest.mark.parametrize("name", [v.name for v in VARIANTS.values() if v.data])
def test_variants_by_data_are_the_plain_model(name):
    setting = StackSpec(small(), 2, N_LABELS)
    assert plan(name).encoder(setting, {}) == plan(name).decoder(setting, {}) == []
    assert len(plan(f"{name}+pascal").encoder(setting, {})) == 1


# Memory.

LONG, WIDE = 40, 64  # tokens, and the width of a head


class Largest(TorchDispatchMode):
    """Keeps the number of elements of the largest tensor that is made."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.n = max(self.n, leaf.numel())
        return out


def largest(modifiers, decoder=()):
    """The elements of the largest tensor of a forward and backward pass: 2 pairs of 40 tokens."""
    size = small(d_model=2 * WIDE, n_heads=2, d_ff=WIDE)
    torch.manual_seed(1)
    model = Transformer(size, 11, 11, modifiers(size), decoder)
    heads = [-1, *(word - 1 - word % 3 % word for word in range(1, LONG - 1))]
    labels = [LABELS[word % 4] for word in range(LONG - 1)]
    tree = PieceTree(heads, labels, [0], range(LONG - 1))
    sources = source([[4] * LONG] * 2, [tree] * 2)
    with Largest() as found:
        memory = model.encode(sources)
        states, _ = model.decode(side([[5] * LONG] * 2), memory)
        (states.sum() + sum(memory.losses.values())).backward()
    return found.n


@pytest.mark.parametrize("name", MODELS)
def test_no_tensor_has_a_vector_for_each_pair_of_tokens(name):
    """Not even one that a batch shares: (T, T, d_head) would be 102,400 elements."""
    _, options = split(MODELS[name])
    size = small(d_model=2 * WIDE, n_heads=2, d_ff=WIDE)
    setting = StackSpec(size, size.encoder_layers, N_LABELS)
    decoder = plan(name).decoder(setting, options)
    n = largest(lambda size: plan(name).encoder(setting, options), decoder)
    assert n < LONG * LONG * WIDE


def test_such_a_tensor_would_be_seen():
    class Careless(Modifier):
        def scores(self, state, site, scores):
            vectors = torch.ones(LONG, LONG, WIDE)
            return scores + torch.einsum("bhid,ijd->bhij", site.q, vectors)

    assert largest(lambda size: [Careless([0])]) >= LONG * LONG * WIDE
