"""The model of a run: its modifiers, the features they need, fresh weights or trained ones."""

from pathlib import Path

from torch import Tensor

from synmt_cli.core import variants
from synmt_cli.core.model import initialisation
from synmt_cli.core.model.embedding import Embedding, token_table
from synmt_cli.core.model.layers import Encoder
from synmt_cli.core.model.modifier import Modifier, features_read
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import tensors
from synmt_cli.core.run.config import Config, SettingsLayer, resolve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.run.resuming import unsaid
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.core.transitions.grammar import Grammar
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import ConfigError, UsageError


def read_config(run: Run) -> Config:
    """The resolved configuration. Raises ReadError, ConfigError with file and line."""
    tables = run.tables()
    run.refuse_other_code()
    try:
        newer = SettingsLayer(unsaid(tables), "settings newer than the run")
        config = resolve(tables.get("variant"), "base", [newer, run.settings()])
        outlines(config)  # the variant's own checks of its options
    except UsageError as error:  # not the command line's fault
        raise ConfigError(f"{run.config}: {error}") from None
    return config


def load(run: Run, checkpoint: str = "best") -> Transformer:
    """The model with its weights: `best`, `last` or `step-N`. Raises SynmtError."""
    config = read_config(run)
    weights = run.weights(checkpoint)
    vocabularies, n_labels = run.vocabularies(), len(run.labels())
    values = read_weights(weights, config, vocabularies, n_labels)
    model = build(config, vocabularies, n_labels)
    tensors.load_into(model, values)
    return model.eval()


def read_weights(
    path: Path, config: Config, vocabularies: Vocabularies, n_labels: int
) -> dict[str, Tensor]:
    """The tensors of a file. Raises ConfigError unless they fit this model.

    Sizes are checked before any memory is taken.
    """
    with initialisation.without_values():
        outline = build(config, vocabularies, n_labels)
    return tensors.read(path, tensors.fitting(outline, vocabularies.fingerprint, path))[0]


def build(config: Config, vocabularies: Vocabularies, n_labels: int) -> Transformer:
    """A model with fresh weights. Raises UsageError, ConfigError."""
    n_source, n_target = vocabularies.source.size, vocabularies.target.size
    if config.model.tied == "all" and vocabularies.source is not vocabularies.target:
        raise ConfigError("two vocabularies cannot share embeddings; --set model.tied=decoder")
    rules = grammar(config, vocabularies)
    encoder, decoder = modifiers(config, n_labels, len(rules.names) if rules else 0)
    rereads = variants.plan(config.variant).rereads
    model = Transformer(config.model, n_source, n_target, encoder, decoder, rereads, rules)
    model.correct_for(config.training.transition_weight)
    return model


def encoder(config: Config, vocabularies: Vocabularies, n_labels: int) -> Encoder:
    """The encoder of `build`, without a decoder. Raises UsageError."""
    size = config.model
    table = token_table(vocabularies.source.size, size.d_model)
    return Encoder(Embedding(table, size, size.positions), size, modifiers(config, n_labels)[0])


def grammar(config: Config, vocabularies: Vocabularies) -> Grammar | None:
    """The grammar of the transitions that the variant writes, None where it writes none.

    Raises ConfigError where the target's vocabulary has no transitions.
    """
    plan = variants.plan(config.variant)
    return Grammar.of(vocabularies.target) if plan.transitions else None


def modifiers(
    config: Config, n_labels: int, n_arcs: int = 1
) -> tuple[list[Modifier], list[Modifier]]:
    """The encoder's and the decoder's modifiers. Raises UsageError for a bad option.

    n_labels: how many labels the sources' trees have. n_arcs: how many the targets' transitions.
    """
    plan, size = variants.plan(config.variant), config.model
    return (
        plan.encoder(StackSpec(size, size.encoder_layers, n_labels), config.options),
        plan.decoder(StackSpec(size, size.decoder_layers, n_arcs), config.options),
    )


def outlines(config: Config) -> tuple[list[Modifier], list[Modifier]]:
    """The modifiers for one label and without values, to read what they say about themselves."""
    with initialisation.without_values():
        return modifiers(config, 1)


def needs(config: Config, training: bool) -> tuple[str, ...]:
    """The source features that the variant reads, sorted.

    A variant that needs none to translate needs no parser either.
    """
    encoder, _ = outlines(config)
    return tuple(features_read(encoder, training=training))


def target_needs(config: Config) -> tuple[str, ...]:
    """The features of the target's tree so far that the variant reads, sorted."""
    _, decoder = outlines(config)
    return tuple(features_read(decoder, training=True))
