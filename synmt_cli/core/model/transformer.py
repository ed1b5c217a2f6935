"""The translation model: encoder, decoder, and the scores of the next token."""

import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.attention import KeysValues
from synmt_cli.core.model.embedding import Embedding, token_table
from synmt_cli.core.model.layers import Decoder, Encoder, Memory
from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.prefixes import Pass, draw, longest_first, packed_passes, tokens_per_pass
from synmt_cli.core.model.size import Size
from synmt_cli.core.transitions.grammar import Grammar

LOGITS = 2**21  # computed at a time on a CPU: fewer are slower, and more only take memory
GPU_LOGITS = 2**26  # on a GPU each block costs a dozen launches


class Transformer(nn.Module):
    """P(y | x) with optional modifiers on either stack.

    n_source, n_target: sizes of the vocabularies; with `tied = all` they must be equal.
    rereads: the decoder reads its whole prefix anew for each token, and every token sees every
    other. grammar: of the transitions that targets consist of; None if they consist of pieces.
    """

    def __init__(
        self,
        size: Size,
        n_source: int,
        n_target: int,
        encoder: Sequence[Modifier] = (),
        decoder: Sequence[Modifier] = (),
        rereads: bool = False,
        grammar: Grammar | None = None,
    ) -> None:
        super().__init__()
        if size.tied == "all" and n_source != n_target:
            raise ValueError(f"tied embeddings need one vocabulary, not {n_source} and {n_target}")
        self.size = size
        self.rereads = rereads
        self.grammar = grammar
        target = token_table(n_target, size.d_model)
        source = target if size.tied == "all" else token_table(n_source, size.d_model)
        self.encoder = Encoder(Embedding(source, size, size.positions), size, encoder)
        self.decoder = Decoder(Embedding(target, size, size.decoder_positions), size, decoder)
        if rereads and (names := self.decoder.loss_names()):
            raise ValueError(f"a decoder that re-reads its prefix has no losses: {sorted(names)}")
        self.output = target if size.tied != "none" else token_table(n_target, size.d_model)
        self.output_bias: Tensor | None  # (n_target,), see correct_for
        self.register_buffer("output_bias", None, persistent=False)
        self.output_linear: nn.Module | None = None  # used instead (inference_linear.py)

    def encode(self, source: Side) -> Memory:
        """source: ids (B, S) that end in EOS."""
        return self.encoder(source)

    def decode(
        self, target: Side, memory: Memory, lengths: Sequence[int] = ()
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """target: ids (B, T) that begin with BOS -> (states (B, T, D), the decoder's losses).

        lengths: of the targets without padding. With them, a decoder that re-reads its prefix
        skips the padding, whose states are then 0.
        """
        if not self.rereads:
            return self.decoder(target, memory)
        n_targets, n_tokens = target.ids.shape
        device = target.ids.device
        lengths, order = longest_first(lengths or [n_tokens] * n_targets, device)
        target, memory = target[order], memory.of(order)
        sources = self.decoder.keys_values(memory)
        found, places = [], []
        n_cells = tokens_per_pass(device, self.size.d_model)
        for one in packed_passes(lengths, n_tokens, draw(n_tokens, 1), n_cells):
            here = one.to(device)
            states = self.reread(here, target, sources, memory.allowed)
            found.append(states.flatten(0, 1).index_select(0, here.ends))
            places.append(here.predicted)
        flat = torch.cat(found)  # (N, D), as the prefixes were read
        # The state of a prefix stands where the token that it predicts does.
        every = flat.new_zeros(n_targets * n_tokens, flat.size(1))
        every = every.index_copy(0, torch.cat(places), flat).unflatten(0, (n_targets, n_tokens))
        return torch.empty_like(every).index_copy(0, order, every), {}

    def reread(
        self, one: Pass, target: Side, sources: Sequence[KeysValues], allowed: Tensor | None
    ) -> Tensor:
        """States of the newest tokens of a pass of prefixes: (R, 2, D).

        target: ids (B, T). sources: what `Decoder.keys_values` returns for its B sources.
        allowed: their mask.
        """
        return self.decoder.reread_packed(
            one.side(target),
            one.prefixes(),
            [(k[one.targets], v[one.targets]) for k, v in sources],
            None if allowed is None else allowed[one.targets],
        )

    def logits(self, states: Tensor) -> Tensor:
        """(..., D) -> (..., n_target): unnormalised log-probabilities of the next token.

        In single precision even within autocast: in bf16 a score of 10 is a multiple of 1/16.
        """
        if self.output_linear is not None:
            return self.output_linear(states)
        weight = self.output.weight
        with torch.autocast(states.device.type, enabled=False):
            return F.linear(states.to(weight.dtype), weight, self.output_bias)

    @torch.no_grad()
    def log_probs(self, states: Tensor, target: Tensor) -> Tensor:
        """states: (N, D); target: (N,) ids -> log P of each target, (N,)."""
        return torch.cat([_log_probs(z, y) for z, y in self._logit_blocks(states, target)])

    @torch.no_grad()
    def judged(self, states: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """What `log_probs` returns, and whether each target is the likeliest token, (N,).

        Of equally likely tokens the first is the likeliest.
        """
        blocks = self._logit_blocks(states, target)
        found = [(_log_probs(z, y), z.argmax(-1) == y) for z, y in blocks]
        log_probs, is_right = zip(*found, strict=True)
        return torch.cat(log_probs), torch.cat(is_right)

    def _logit_blocks(self, states: Tensor, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields the logits of some states, (n, n_target), and their targets, (n,).

        All of them, (N, n_target), would take much memory.
        """
        n_target = self.output.weight.size(0)
        n = max(1, (LOGITS if states.device.type == "cpu" else GPU_LOGITS) // n_target)
        for own, y in zip(states.split(n), target.split(n), strict=True):
            yield self.logits(own).float(), y

    def correct_for(self, arc_weight: float) -> None:
        """Corrects `logits` for the weight that arcs have in the loss.

        A cross-entropy in which token y weighs w_y is smallest for q_y = w_y p_y / sum_v w_v p_v,
        so p = softmax(log q - log w). Arcs of weight 0 are not learned and cannot be corrected.
        """
        if self.grammar is not None and arc_weight not in (0, 1):
            is_arc = torch.from_numpy(self.grammar.is_arc)
            self.output_bias = is_arc.to(self.output.weight) * -math.log(arc_weight)


def _log_probs(logits: Tensor, target: Tensor) -> Tensor:
    """logits: (n, n_target); target: (n,) ids -> log P of each, (n,)."""
    return logits.gather(1, target[:, None])[:, 0] - logits.logsumexp(-1)
