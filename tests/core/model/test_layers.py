import math

import pytest
import torch
from support.models import PAD, logits, make, side, small
from support.reference import decode, encode, sinusoids
from torch import nn

from synmt_cli.core.model import embedding
from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.transformer import Transformer

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
SOURCE = [[4, 7, 2, 9, 3], [5, 5, 8, 3]]  # 3 ends a source; lengths differ
TARGET = [[2, 6, 4, 4, 8, 7], [2, 10, 5]]  # 2 begins a target


@NORMS
@pytest.mark.parametrize("tied", ["all", "decoder", "none"])
def test_forward_equals_explicit_loops(norm, tied):
    model = make(small(norm, tied=tied))
    memory = model.encode(side(SOURCE)).states
    scores = logits(model, side(SOURCE), side(TARGET))
    for b, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        states = torch.from_numpy(encode(model, source))
        torch.testing.assert_close(memory[b, : len(source)], states)
        expected = torch.from_numpy(decode(model, target, states.numpy()))
        torch.testing.assert_close(scores[b, : len(target)], expected)


def torch_layers(model, stack, kind):
    """torch's own layers with the weights of `stack`."""
    size, layers = model.size, []
    for ours in stack.layers:
        theirs = kind(
            size.d_model,
            size.n_heads,
            size.d_ff,
            dropout=0.0,
            batch_first=True,
            norm_first=size.norm == "pre",
        )
        attentions = [(theirs.self_attn, ours.attention.qkv, ours.attention.out)]
        if kind is nn.TransformerDecoderLayer:
            both = nn.Linear(1, 1)
            both.weight = nn.Parameter(torch.cat((ours.cross.q.weight, ours.cross.kv.weight)))
            both.bias = nn.Parameter(torch.cat((ours.cross.q.bias, ours.cross.kv.bias)))
            attentions.append((theirs.multihead_attn, both, ours.cross.out))
        for attention, qkv, out in attentions:
            attention.in_proj_weight, attention.in_proj_bias = qkv.weight, qkv.bias
            attention.out_proj.load_state_dict(out.state_dict())
        theirs.linear1.load_state_dict(ours.feed_forward.wide.state_dict())
        theirs.linear2.load_state_dict(ours.feed_forward.narrow.state_dict())
        for i, norm in enumerate(ours.norms, 1):
            getattr(theirs, f"norm{i}").load_state_dict(norm.state_dict())
        layers.append(theirs.double().eval())
    return layers


def embedded(stack, ids):
    d_model = stack.embedding.table.embedding_dim
    p = torch.from_numpy(sinusoids(range(ids.size(1)), d_model))
    return stack.embedding.table(ids) * math.sqrt(d_model) + p


@NORMS
def test_forward_equals_torch_transformer_layers(norm):
    model = make(small(norm, d_model=32, n_heads=4, encoder_layers=3))
    source = side([[5, 6, 7, 8, 9, 3], [4, 3], [9, 8, 7, 3]])
    target = side([[2, 4], [2, 5, 6, 7, 8], [2, 9, 9]])
    with torch.no_grad():
        x = embedded(model.encoder, source.ids)
        for layer in torch_layers(model, model.encoder, nn.TransformerEncoderLayer):
            x = layer(x, src_key_padding_mask=source.pad)
        memory = model.encoder.norm(x)
        y = embedded(model.decoder, target.ids)
        future = torch.ones(5, 5, dtype=torch.bool).triu(1)
        for layer in torch_layers(model, model.decoder, nn.TransformerDecoderLayer):
            y = layer(y, memory, tgt_mask=future, memory_key_padding_mask=source.pad)
        expected = model.logits(model.decoder.norm(y))
        actual = logits(model, source, target)
    real = ~target.pad
    torch.testing.assert_close(actual[real], expected[real])


def test_stacks_end_in_a_norm_only_where_norms_come_first():
    assert isinstance(make(small("pre")).encoder.norm, nn.LayerNorm)
    assert not list(make(small("post")).decoder.norm.parameters())


@pytest.mark.parametrize("d_model", [2, 6, 16])
def test_sinusoid_is_the_papers_formula(d_model):
    rows = embedding.sinusoid(torch.arange(40), d_model)
    expected = torch.from_numpy(sinusoids(range(40), d_model)).float()
    torch.testing.assert_close(rows, expected, rtol=0, atol=4e-6)


def test_sinusoid_takes_real_positions_of_any_shape():
    positions = torch.tensor([[0.5, 3.0], [-2.0, 7.25]])
    rows = embedding.sinusoid(positions, 8)
    assert rows.shape == (2, 2, 8)
    expected = torch.from_numpy(sinusoids([0.5, 3.0, -2.0, 7.25], 8)).float()
    torch.testing.assert_close(rows.flatten(0, 1), expected)


def test_positions_beyond_the_first_table_are_right():
    model = make(small(n_heads=2, d_model=4))
    x = model.encoder.embedding(torch.full((1, 700), 4), ())
    places = torch.tensor([[697, 698, 699]])
    short = model.encoder.embedding(torch.full((1, 3), 4), (), places, 700)
    torch.testing.assert_close(x[:, 697:], short)
    p = torch.from_numpy(sinusoids(range(700), 4))
    vectors = model.encoder.embedding.table.weight[4] * 2 + p
    torch.testing.assert_close(x[0], vectors, rtol=0, atol=1e-4)


def test_without_positions_the_encoder_sees_a_bag_of_words():
    model = make(small(positions="none"))
    forward = model.encode(side([[4, 5, 6]])).states
    torch.testing.assert_close(model.encode(side([[6, 5, 4]])).states, forward.flip(1))


@pytest.mark.parametrize(("tied", "tables"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_tied_embeddings_are_one_parameter(tied, tables):
    model = make(small(tied=tied))
    weights = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    assert len(weights) == tables
    assert (model.output is model.decoder.embedding.table) == (tied != "none")
    assert (model.output is model.encoder.embedding.table) == (tied == "all")


def test_one_table_cannot_serve_two_vocabularies():
    with pytest.raises(ValueError, match=r"one vocabulary, not 5 and 6"):
        Transformer(small(tied="all"), 5, 6)
    assert Transformer(small(tied="decoder"), 5, 6).output.weight.shape == (6, 12)


class Losing(Modifier):
    """A modifier with a loss."""

    name = "losing"

    def loss(self, state):
        return torch.zeros(())


def test_losses_of_a_decoder_that_rereads_are_refused_since_they_would_be_lost():
    with pytest.raises(ValueError, match=r"has no losses: \['losing'\]"):
        Transformer(small(), 5, 5, decoder=[Losing()], rereads=True)
    Transformer(small(), 5, 5, decoder=[Losing()])
    Transformer(small(), 5, 5, encoder=[Losing()], rereads=True)


@NORMS
def test_gradient_reaches_every_parameter(norm):
    model = make(small(norm, tied="none"), n=5)
    source, target = side([[0, 1, 2, 3, 4]]), side([[4, 3, 2, 1, 0]])
    logits(model, source, target).square().sum().backward()
    for name, parameter in model.named_parameters():
        reached = [part.abs().sum() > 1e-9 for part in parameter.grad.split(12)]
        if name.endswith("kv.bias"):  # ([q,] k, v): no softmax depends on a key's bias
            assert not reached.pop(-2), name
        assert all(reached), name


@pytest.mark.parametrize("layers", [(), (0, 1)])
def test_the_future_never_matters(layers):
    model = make(small(), decoder=[Everywhere(*layers)])
    source = side(SOURCE[:1])
    one = logits(model, source, side([[2, 4, 5, 6]]))
    other = logits(model, source, side([[2, 4, 9, 1]]))
    assert torch.equal(one[:, :2], other[:, :2])
    assert not torch.allclose(one[:, 2:], other[:, 2:])


def test_dropout_acts_in_training_only():
    model = make(small(dropout=0.3, attention_dropout=0.2, activation_dropout=0.1))
    source, target = side(SOURCE), side(TARGET)
    assert torch.equal(logits(model, source, target), logits(model, source, target))
    model.train()
    assert not torch.allclose(logits(model, source, target), logits(model, source, target))


@pytest.mark.parametrize("where", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_alone(where):
    model = make(small(**{where: 0.4})).train()
    torch.manual_seed(2)
    one, two = (model.encode(side(SOURCE)).states for _ in range(2))
    assert not torch.allclose(one, two)


def test_attention_to_the_source_has_the_dropout_of_attention():
    model = make(small(attention_dropout=0.4)).train()
    for layer in model.decoder.layers:
        layer.attention.eval()
    model.encoder.eval()
    assert not torch.allclose(*(logits(model, side(SOURCE), side(TARGET)) for _ in range(2)))


def test_embeddings_have_about_unit_length_and_are_dropped():
    torch.manual_seed(1)
    table = embedding.token_table(500, 12)
    assert table.weight.std().item() == pytest.approx(12**-0.5, rel=0.05)
    size, ids = small(dropout=0.5), torch.arange(500)[None]
    module = embedding.Embedding(table, size, "sinusoid")
    whole, dropped = module.eval()(ids, []), module.train()(ids, [])
    kept = dropped != 0
    assert kept.float().mean().item() == pytest.approx(0.5, abs=0.05)
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])


def test_a_sentence_of_padding_alone_stays_finite():
    model = make(small(), encoder=[Everywhere(0)])
    source = Side(torch.tensor([[4, 3], [PAD, PAD]]), torch.tensor([[False, False], [True, True]]))
    scores = logits(model, source, side([[2, 4], [2, 4]]))
    assert scores.isfinite().all()
    scores.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


class Everywhere(Modifier):
    """Has every hook, changes nothing, and writes down what it is shown."""

    def __init__(self, *layers, loss=None):
        super().__init__(layers)
        self.calls, self.value = [], loss

    def prepare(self, side):
        self.calls.append(("prepare", side.ids.shape))
        return "state"

    def seen(self, hook, state, x, site=None):
        assert state == "state"
        self.calls.append((hook, tuple(x.shape), *([site.layer] if site else [])))
        return x

    def tokens(self, state, x):
        return self.seen("tokens", state, x)

    def positions(self, state, p):
        return self.seen("positions", state, p)

    def inputs(self, state, x):
        return self.seen("inputs", state, x)

    def scores(self, state, site, scores):
        return self.seen("scores", state, scores, site)

    def context(self, state, site, weights, context):
        real = weights.sum(-1)
        torch.testing.assert_close(real, torch.ones_like(real))
        return self.seen("context", state, context, site)

    def loss(self, state):
        return None if self.value is None else torch.tensor(self.value)


def test_hooks_are_called_in_order_with_the_shapes_they_promise():
    watch = Everywhere(1)
    make(small(), encoder=[watch]).encode(side(SOURCE))
    assert watch.calls == [
        ("prepare", (2, 5)),
        ("tokens", (2, 5, 12)),
        ("positions", (1, 5, 12)),
        ("inputs", (2, 5, 12)),
        ("scores", (2, 3, 5, 5), 1),
        ("context", (2, 3, 5, 4), 1),
    ]


@NORMS
def test_a_modifier_that_changes_nothing_gives_the_plain_model(norm):
    bare = make(small(norm))
    watched = make(small(norm), encoder=[Everywhere(0, 1)], decoder=[Everywhere(0, 1)])
    source, target = side(SOURCE), side(TARGET)
    expected = logits(bare, source, target)
    torch.testing.assert_close(logits(watched, source, target), expected)


def test_losses_of_modifiers_are_summed_for_each_stack():
    encoder = [Everywhere(loss=0.5), Everywhere(), Everywhere(loss=2.0)]
    model = make(small(), encoder=encoder, decoder=[Everywhere(loss=4.0)])
    memory = model.encode(side(SOURCE))
    assert memory.losses[""].item() == 2.5
    assert model.decode(side(TARGET), memory)[1][""].item() == 4.0
    assert make(small()).encode(side(SOURCE)).losses == {}


def test_losses_are_told_apart_by_the_name_of_the_variant():
    one, other = Everywhere(loss=0.5), Everywhere(loss=2.0)
    one.name, other.name = "one", "other"
    found = make(small(), encoder=[one, other]).encode(side(SOURCE)).losses
    assert {name: loss.item() for name, loss in found.items()} == {"one": 0.5, "other": 2.0}


def test_inputs_are_changed_where_the_equation_says():
    """x = inputs(tokens(E sqrt(d)) + positions(PE)): three different changes, one sum."""

    class Shift(Modifier):
        def tokens(self, state, x):
            return 2 * x

        def positions(self, state, p):
            return 3 * p

        def inputs(self, state, x):
            return x + 1

    model = make(small(), encoder=[Shift()])
    shift, ids = model.encoder.prepare(side(SOURCE[:1])), torch.tensor(SOURCE[:1])
    p = torch.from_numpy(sinusoids(range(5), 12))
    expected = 2 * model.encoder.embedding.table(ids) * math.sqrt(12) + 3 * p + 1
    torch.testing.assert_close(model.encoder.embedding(ids, shift), expected, rtol=0, atol=1e-5)
