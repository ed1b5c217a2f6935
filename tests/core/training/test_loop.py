"""The loop of training: the order of validations, saves and ends, and what they leave."""

import copy
import itertools
import shutil
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import launches
from torch.nn import functional as F

from synmt_cli import signals
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.distributed.sharding import Share
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import tensors
from synmt_cli.core.run.config import Training
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import EOS, Vocabularies
from synmt_cli.core.training import gradient, loop
from synmt_cli.core.training.device.loss_scale import LossScale
from synmt_cli.core.training.events import Ended, Report, Saved, Validated
from synmt_cli.core.training.loop import Trainer
from synmt_cli.core.training.validation import Measured
from synmt_cli.errors import ConfigError

N = 12
SIZE = Size(d_model=8, d_ff=8, n_heads=2, encoder_layers=1, decoder_layers=1, dropout=0.1)


@pytest.fixture
def trainer(tmp_path):
    def make(ranks=None, grammar=None, **settings):
        torch.manual_seed(0)
        random = np.random.default_rng(0)
        rows = [random.integers(4, N, random.integers(2, 6)).tolist() for _ in range(40)]
        source = Ragged.of([[*row, EOS] for row in rows], np.int64)
        lines = [" ".join(map(str, r)) for r in rows]
        encoding = Encoding([], Labels())
        corpus = Corpus(source, Ragged.of(rows, np.int64), {}, {}, encoding, lines, {})
        letters = launches.Numbers()
        defaults = {"batch_tokens": 32, "warmup": 2, "lr": 0.01, "validate_every": 2}
        return Trainer(
            Run(tmp_path),
            Training(**{**defaults, "save_every": 3, **settings}),
            Transformer(SIZE, N, N, grammar=grammar),
            Vocabularies(letters, letters),
            corpus,
            corpus,
            torch.device("cpu"),
            ranks or Ranks(),
        )

    return make


def kinds(events):
    return [(type(e).__name__, e.step) for e in events if isinstance(e, Validated | Saved | Ended)]


def test_validations_saves_and_the_end_come_once_each(trainer):
    assert kinds(trainer(max_steps=4).events(signals.Request(), None)) == [
        ("Validated", 2),
        ("Saved", 2),
        ("Saved", 3),
        ("Validated", 4),
        ("Saved", 4),
        ("Ended", 4),
    ]


def test_the_last_step_is_validated_even_where_none_is_due(trainer):
    found = kinds(trainer(max_steps=1).events(signals.Request(), None))
    assert found == [("Validated", 1), ("Saved", 1), ("Ended", 1)]


def test_patience_ends_a_run_that_gets_no_better(trainer):
    worse = trainer(max_steps=100, patience=2, lr=0.0, initial_lr=0.0)
    events = list(worse.events(signals.Request(), None))
    assert events[-1] == Ended(6, "patience", True)


def test_the_extra_validation_at_the_end_costs_no_patience(trainer):
    still = {"max_steps": 5, "patience": 3, "lr": 0.0, "initial_lr": 0.0}
    one = trainer(**still)
    found = kinds(one.events(signals.Request(), None))
    assert [step for kind, step in found if kind == "Validated"] == [2, 4, 5]
    assert one.state.stale == 1


@pytest.mark.parametrize("stops", [(100,), (4, 100), (6, 8, 100)])
def test_a_validation_that_is_the_least_perplexed_costs_no_patience(trainer, stops):
    """While a model learns, BLEU near 0 is chance; resuming changes nothing."""
    found = iter([(5.0, 0.5), (4.0, 0.3), (3.0, 0.4), (3.5, 0.2), (3.2, 0.1)])
    for max_steps in stops:
        one = trainer(max_steps=max_steps, patience=2)
        one.resume()
        one._measured = lambda request: Measured(*next(found))
        *_, last = one.events(signals.Request(), None)
    assert last == Ended(10, "patience", True)
    assert (one.state.best_step, one.state.least_nll) == (2, 3.0)
    assert tensors.stated_step(one.run.model) == "2"  # worse models do not replace it


@pytest.mark.parametrize(("patience", "end"), [(2, 6), (1, 6), (4, 10), (0, 12)])
def test_a_run_that_lost_patience_goes_on_with_more_of_it(trainer, patience, end):
    still = {"max_steps": 12, "lr": 0.0, "initial_lr": 0.0}
    list(trainer(patience=2, **still).events(signals.Request(), None))
    again = trainer(patience=patience, **still)
    assert again.resume()
    *_, last = again.events(signals.Request(), None)
    assert last == Ended(end, "patience" if patience else "max_steps", True)


def test_a_validation_that_is_owed_comes_before_the_end_of_patience(trainer):
    request = signals.Request()

    def abandoned(request):
        request.number = 15

    best, *worse = (Measured(nll, -nll) for nll in (1.0, 5.0, 6.0, 6.0))
    found = iter([Measured(3.0, -3.0), *worse])
    one = trainer(max_steps=40)
    one._measured = lambda request: next(found, None) or abandoned(request)
    *_, last = one.events(request, None)
    assert (last, one.state.stale) == (Ended(10, "signal", False), 3)
    found = iter([best, *worse])
    again = trainer(max_steps=40, patience=3)
    again.resume()
    again._measured = lambda request: next(found)
    *_, last = again.events(signals.Request(), None)
    assert (last, again.state.best_step) == (Ended(16, "patience", True), 10)


def test_patience_that_ran_out_at_a_limit_ends_the_run_when_the_limit_is_raised(trainer):
    """It would have ended there with the higher limit from the beginning."""
    still = {"patience": 2, "lr": 0.0, "initial_lr": 0.0}
    *_, last = trainer(max_steps=6, **still).events(signals.Request(), None)
    assert last == Ended(6, "max_steps", True)
    again = trainer(max_steps=12, **still)
    assert again.resume()
    *_, last = again.events(signals.Request(), None)
    assert last == Ended(6, "patience", True)


class At:
    """A request to stop that comes at one step."""

    def __init__(self, trainer, step):
        self.trainer, self.step = trainer, step

    def __bool__(self):
        return self.trainer.state.step == self.step


def test_a_run_that_was_stopped_keeps_the_checkpoints_of_one_that_was_not(trainer):
    every = {"max_steps": 9, "validate_every": 3, "save_every": 3, "keep": 2}
    for step, kept in ((4, [3, 4]), (5, [3, 5]), (6, [3, 6]), (7, [6, 7]), (0, [6, 9])):
        one = trainer(**every)
        one.resume()
        *_, last = one.events(At(one, step), None)
        assert last.step == step or last.finished
        assert one.run.steps() == kept


def test_a_run_that_is_to_keep_fewer_checkpoints_keeps_no_more(trainer):
    """This holds for an ended run too, since the mean is over the checkpoints that there are."""
    every = {"max_steps": 9, "save_every": 3, "validate_every": 3}
    one = trainer(**every, keep=3)
    list(one.events(signals.Request(), None))
    assert one.run.steps() == [3, 6, 9]
    again = trainer(**every, keep=1)
    again.resume()
    list(again.events(signals.Request(), None))
    assert again.run.steps() == [9]


def test_a_validation_that_was_made_up_for_is_saved(trainer):
    one = trainer(max_steps=9)
    assert kinds(one.events(At(one, 4), None))[-2:] == [("Saved", 4), ("Ended", 4)]
    found = []
    for _ in range(2):
        one = trainer(max_steps=9)
        one.resume()
        found.append(kinds(one.events(signals.Request(), 1e-9)))
    assert found == [[("Validated", 4), ("Saved", 4), ("Ended", 4)], [("Ended", 4)]]


def test_after_a_resume_the_speed_is_that_of_the_updates_made_since(trainer, monkeypatch):
    list(trainer(max_steps=7).events(signals.Request(), None))
    again = trainer(max_steps=8)
    again.resume()
    before, pulses = again.state.tokens, []
    again.watch = pulses.append
    ticks = itertools.count()
    # An update takes a second, the wait for its data included.
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    list(again.events(signals.Request(), None))
    assert before > 0
    assert pulses[0].tokens_per_second == again.state.tokens - before


def test_accumulated_batches_have_the_gradient_of_one_large_batch(trainer):
    def gradient(batch_tokens, accumulate):
        one = trainer(batch_tokens=batch_tokens, accumulate=accumulate, clip_norm=0.0)
        one.model.eval()  # without dropout
        rows = list(one.train.epoch(batch_tokens, 1, 0))
        one._update(one.updates.prepared(rows), signals.Request())
        return torch.cat([p.grad.flatten() for p in one.model.parameters()])

    torch.testing.assert_close(gradient(16, 9999), gradient(10_000, 1), rtol=1e-4, atol=1e-6)


def smoothed(log_p, target, is_arc, settings):
    """The loss of Szegedy et al. (2016): 1 - eps on the target, eps on the whole vocabulary.

    Arcs have an eps and a weight of their own. Returns the loss, and the nats of the targets.
    """
    eps = torch.where(is_arc[target], settings.transition_smoothing, settings.label_smoothing)
    weight = torch.where(is_arc[target], settings.transition_weight, 1.0)
    own = -log_p.gather(1, target[:, None])[:, 0]
    return (weight * ((1 - eps) * own - eps * log_p.mean(1))).sum(), own.sum().item()


def test_the_settings_make_the_updates_and_reports_of_a_plain_loop(trainer, monkeypatch):
    """Adam by its formulas (Kingma and Ba 2015), on gradients that are clipped by their norm."""
    is_arc = torch.arange(N) % 4 == 0
    one = trainer(
        grammar=SimpleNamespace(is_arc=is_arc.numpy()),
        max_steps=4,
        warmup=3,
        lr=0.05,
        initial_lr=0.02,
        seed=7,
        betas=(0.7, 0.9),
        eps=1e-3,
        weight_decay=0.2,
        clip_norm=0.4,
        label_smoothing=0.3,
        transition_weight=0.4,
        transition_smoothing=0.1,
        precision="fp32",
        metric="loss",
        validate_every=100,
        save_every=100,
    )
    plain = copy.deepcopy(one.model).train()
    batches = [*itertools.islice(one.train.epoch(32, 7, 0), 4)]
    (random,) = one.state.random.values()
    monkeypatch.setattr(loop, "REPORT_EVERY", 4)
    (report,) = (e for e in one.events(signals.Request(), None) if isinstance(e, Report))

    torch.set_rng_state(random)  # the same dropout
    weights = [*plain.parameters()]
    first, second = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    sums, n_tokens, norms = torch.zeros(2), 0, []
    for step, rows in enumerate(batches, 1):
        batch = one.train.batch(rows)
        states, _ = plain.decode(batch.target, plain.encode(batch.source))
        real = torch.arange(states.size(1)) < torch.tensor(batch.lengths)[:, None]
        log_p = F.linear(states[real], plain.output.weight).log_softmax(1)
        loss, nll = smoothed(log_p, batch.target_out[real], is_arc, one.settings)
        n = sum(batch.lengths)
        gradients = torch.autograd.grad(loss / n, weights)
        norm = torch.cat([g.flatten() for g in gradients]).norm().item()
        sums, n_tokens = sums + torch.tensor([loss.item(), nll]), n_tokens + n
        norms.append(norm)
        lr = 0.02 + 0.03 * step / 3 if step < 3 else 0.05 * (3 / step) ** 0.5
        with torch.no_grad():
            for w, g, m, v in zip(weights, gradients, first, second, strict=True):
                cut = g * min(1, 0.4 / norm) + 0.2 * w
                m.lerp_(cut, 1 - 0.7)
                v.lerp_(cut**2, 1 - 0.9)
                w -= lr * (m / (1 - 0.7**step)) / ((v / (1 - 0.9**step)).sqrt() + 1e-3)
    assert max(norms) > 0.4, "the gradient is cut"
    for found, wanted in zip(one.model.parameters(), weights, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert [report.loss, report.nll] == pytest.approx((sums / n_tokens).tolist(), rel=1e-4)
    assert report.gradient_norm == pytest.approx(sum(norms) / 4, rel=1e-4)
    assert (report.step, report.lr) == (4, pytest.approx(lr))


def test_prefixes_are_drawn_as_often_as_the_settings_say(trainer, monkeypatch):
    asked = []

    def backward(model, batch, smoothing, scale, prefix_share, arcs):
        asked.append(prefix_share)
        return gradient.backward(model, batch, smoothing, scale, prefix_share, arcs)

    monkeypatch.setattr(loop, "backward", backward)
    list(trainer(max_steps=2, prefix_share=0.25).events(signals.Request(), None))
    assert asked == [0.25] * 2


def test_a_likelihood_that_is_infinite_where_the_loss_is_not_is_never_saved(trainer):
    one = trainer(max_steps=4)
    backward = one._backward

    def unlikely(batch, scale):
        sums = backward(batch, scale)
        return replace(sums, nll=sums.nll * torch.inf) if one.state.step == 2 else sums

    one._backward = unlikely
    with pytest.raises(ConfigError, match="the negative log-likelihood is inf at step 3 "):
        list(one.events(signals.Request(), None))
    assert one.run.steps() == [2]


def test_each_process_has_a_dropout_of_its_own(trainer):
    found = set()
    for rank, seed in ((0, 1), (1, 1), (0, 2)):
        (state,) = trainer(Ranks(rank, 2), seed=seed).state.random.values()
        found.add(state.numpy().tobytes())
    assert len(found) == 3


def test_a_copy_task_is_learned(trainer):
    one = trainer(max_steps=400, validate_every=400, save_every=400, lr=0.01, warmup=50)
    (result,) = [e for e in one.events(signals.Request(), None) if isinstance(e, Validated)]
    assert result.perplexity < 5  # guessing has N - 4 = 8


def test_fp16_trains_leaves_out_what_overflows_and_resumes_with_its_scale(trainer):
    one = trainer(max_steps=3, precision="fp16", metric="loss")
    one._scale = LossScale(one.device, scale=2.0**24)  # too large for fp16
    before = [p.detach().clone() for p in one.model.parameters()]
    rows = list(one.train.epoch(32, 1, 0))
    one._update(one.updates.prepared(rows[:1]), signals.Request())
    for old, new in zip(before, one.model.parameters(), strict=True):
        assert torch.equal(old, new)
    assert one._scale.scale.item() == 2.0**23
    for _ in range(30):
        one._update(one.updates.prepared(rows[:1]), signals.Request())
    assert any(not torch.equal(a, b) for a, b in zip(before, one.model.parameters(), strict=True))
    assert all(torch.isfinite(p).all() for p in one.model.parameters())
    list(one._save())
    again = trainer(precision="fp16")
    assert again.resume()
    assert again._scale.scale.item() == one._scale.scale.item() < 2.0**23
    assert again._scale.age.item() == one._scale.age.item() > 0


def test_epochs_end_a_run_and_more_of_them_go_on(trainer):
    one = trainer(max_epochs=2, validate_every=1000, save_every=1000)
    events = list(one.events(signals.Request(), None))
    per_epoch = len(list(one.train.epoch(32, 1, 0)))
    assert isinstance(events[-1], Ended)
    assert (events[-1].reason, events[-1].finished) == ("max_epochs", True)
    assert (one.state.epoch, one.state.batch) == (1, per_epoch)
    assert [event.epoch for event in events if isinstance(event, Validated)] == [2]
    assert 2 * per_epoch - 4 <= events[-1].step <= 2 * per_epoch + 4
    more = trainer(max_epochs=3, validate_every=1000, save_every=1000)
    assert more.resume()
    assert list(more.events(signals.Request(), None))[-1].step > events[-1].step


def test_a_lower_limit_of_epochs_reads_no_pair_again(trainer):
    one = trainer(max_steps=50, validate_every=1000)
    list(one.events(signals.Request(), None))
    place = one.state.epoch, one.state.batch
    assert place > (1, 0)
    lower = trainer(max_steps=60, max_epochs=1, validate_every=1000)
    lower.resume()
    list(lower.events(signals.Request(), None))
    assert (lower.state.epoch, lower.state.batch) == place


def test_a_signal_to_another_process_is_no_time_limit(trainer, monkeypatch):
    one = trainer()
    monkeypatch.setattr(one.ranks, "any", lambda flag: True)
    (*_, ended) = one.events(signals.Request(), None)
    assert ended.reason == "signal"


def test_the_time_limit_of_another_process_is_no_signal(trainer, monkeypatch):
    one, answers = trainer(), iter([False, True, False])  # a lost model, an end, a signal
    monkeypatch.setattr(one.ranks, "any", lambda flag: next(answers))
    monkeypatch.setattr(one.ranks, "wait", lambda: None)
    (*_, ended) = one.events(signals.Request(), None)
    assert (ended.step, ended.reason) == (0, "time limit")


def test_what_is_saved_before_the_first_update_is_not_kept(trainer):
    request = signals.Request()
    request.number = 15
    settings = {"max_steps": 6, "validate_every": 2, "save_every": 2, "keep": 4}
    stopped = trainer(**settings)
    assert kinds(stopped.events(request, None)) == [("Saved", 0), ("Ended", 0)]
    resumed = trainer(**settings)
    assert resumed.resume()
    list(resumed.events(signals.Request(), None))
    assert resumed.run.steps() == [2, 4, 6]


def test_a_model_whose_checkpoints_are_gone_is_not_replaced(trainer):
    first = trainer(max_steps=4)
    first._measured = lambda request: Measured(1.0, first.state.step)  # the last is the best
    list(first.events(signals.Request(), None))
    one = trainer(max_steps=4)
    model = one.run.model.read_bytes()
    shutil.rmtree(one.run.folder / "checkpoints")
    with pytest.raises(ConfigError, match="has a model but no checkpoint"):
        one.resume()
    assert one.run.model.read_bytes() == model


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again(trainer):
    one = trainer(max_steps=4)
    events = one.events(signals.Request(), None)
    next(event for event in events if isinstance(event, Validated))
    events.close()
    again = trainer(max_steps=4)
    assert again.run.model.exists()
    assert not again.resume()
    assert kinds(again.events(signals.Request(), None))[0] == ("Validated", 2)


def test_the_first_checkpoint_without_dev_is_not_where_a_validation_would_be(trainer):
    """A run that was killed between its first model and the checkpoint begins again."""
    for _ in range(2):
        one = trainer(max_steps=7)
        one.dev = None
        assert not one.resume()
        events = one.events(signals.Request(), None)
        assert next(event for event in events if isinstance(event, Saved)).step == 3
        events.close()
        shutil.rmtree(one.run.folder / "checkpoints")
        assert one.run.model.exists()


def test_a_lost_model_is_not_said_to_be_written_before_it_is(trainer):
    """Its checkpoint is gone, too; a signal ends the validation that has to find another one."""
    list(trainer(max_steps=4).events(signals.Request(), None))
    trainer().run.model.unlink()
    stopped = signals.Request()
    stopped.number = 15
    for request, first in ((stopped, ("Ended", 4)), (signals.Request(), ("Restored", 4))):
        one = trainer(max_steps=9)
        assert one.resume()
        one.state.best_step = 1
        (event, *_) = one.events(request, None)
        assert (type(event).__name__, event.step) == first
        assert one.run.model.exists() == (request is not stopped)


def test_without_dev_nothing_is_saved_where_a_validation_would_be(trainer):
    one = trainer(max_steps=7)
    one.dev = None
    saved = kinds(one.events(signals.Request(), None))
    assert saved == [("Saved", 3), ("Saved", 6), ("Saved", 7), ("Ended", 7)]


def test_a_model_that_is_lost_with_its_checkpoint_costs_no_patience(trainer):
    """The newest one takes its place; it was validated before, and is not reported again."""
    values = {2: 0.9, 4: 0.5, 6: 0.4, 8: 0.3}
    for stop, lost in ((6, False), (100, True)):
        one = trainer(max_steps=stop, patience=3, keep=1)
        assert one.resume() == lost
        one._measured = lambda _, state=one.state: Measured(5.0 + state.step, values[state.step])
        if lost:
            one.run.model.unlink()
        found = kinds(one.events(signals.Request(), None))
    assert found == [("Saved", 6), ("Validated", 8), ("Saved", 8), ("Ended", 8)]
    assert (one.state.best_step, one.state.stale) == (6, 3)


def test_one_process_draws_anew_where_it_goes_on_with_a_run_of_several(trainer, monkeypatch):
    """It must not draw the numbers that the run began with."""
    list(trainer(max_steps=3).events(signals.Request(), None))
    one = trainer(max_steps=4)
    first = one.state.random  # after the weights were drawn
    monkeypatch.setattr(one.ranks, "own", lambda states: {})
    assert one.resume()
    assert [not torch.equal(state, first[name]) for name, state in one.state.random.items()] == [
        True
    ]


def test_the_norm_of_no_gradient_is_on_the_device(trainer):
    one = trainer()
    share = Share(one.model, one.ranks, torch.device("meta"))
    for max_norm in (0.0, 1.0):
        assert share.clip(max_norm).device.type == "meta"


def test_the_metric_decides_what_is_measured(trainer):
    for metric in ("bleu", "accuracy", "loss"):
        one = trainer(max_steps=2, metric=metric)
        (validated,) = [e for e in one.events(signals.Request(), None) if isinstance(e, Validated)]
        assert validated.metric == metric
        if metric == "loss":
            assert validated.value == -validated.nll
        else:
            assert 0 <= validated.value <= 100
