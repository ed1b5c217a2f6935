"""."""

from __future__ import annotations

from synmt_cli.core import variants
from synmt_cli.core.model import initialisation
from synmt_cli.core.model.modifier import Modifier
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.config import Config
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.core.transitions.grammar import Grammar
from synmt_cli.core.variants.setting import Setting
from synmt_cli.errors import ConfigError


def modifiers(
    config: Config, n_labels: int, n_arcs: int = 1
) -> tuple[list[Modifier], list[Modifier]]:
    """The encoder's and the decoder's modifiers. Raises UsageError for a bad option.

    n_labels: of the sources' trees. n_arcs: labels of the targets' transitions.
    """
    plan, size = variants.plan(config.variant), config.model
    return (
        plan.encoder(Setting(size, size.encoder_layers, n_labels), config.options),
        plan.decoder(Setting(size, size.decoder_layers, n_arcs), config.options),
    )


def grammar(config: Config, vocabularies: Vocabularies) -> Grammar | None:
    """Of the transitions that the variant writes, None where it writes none.

    Raises ConfigError where the target's vocabulary has no transitions.
    """
    plan = variants.plan(config.variant)
    return Grammar.of(vocabularies.target) if plan.transitions else None


def build(config: Config, vocabularies: Vocabularies, n_labels: int) -> Transformer:
    """A model with fresh weights. Raises UsageError, ConfigError."""
    n_source, n_target = vocabularies.source.size, vocabularies.target.size
    if config.model.tied == "all" and vocabularies.source is not vocabularies.target:
        raise ConfigError("two vocabularies cannot share embeddings; --set model.tied=decoder")
    moves = grammar(config, vocabularies)
    encoder, decoder = modifiers(config, n_labels, len(moves.names) if moves else 0)
    rereads = variants.plan(config.variant).rereads
    return Transformer(config.model, n_source, n_target, encoder, decoder, rereads, moves)


def needs(config: Config, training: bool) -> tuple[str, ...]:
    """The source features that the variant reads, sorted.

    Where none is needed to translate, no parser is either.
    """
    with initialisation.without_values():
        encoder, _ = modifiers(config, 1)
    return tuple(
        sorted({name for m in encoder for name in m.needs if training or name not in m.learns})
    )


def target_needs(config: Config) -> tuple[str, ...]:
    """The features of the target's tree so far that the variant reads, sorted."""
    with initialisation.without_values():
        _, decoder = modifiers(config, 1)
    return tuple(sorted({name for m in decoder for name in m.needs}))
