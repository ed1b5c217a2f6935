"""Models trained with the sentencepiece library itself, as other programs train theirs."""

import io

import sentencepiece

from synmt_cli.core.text.vocabulary import SPECIAL_IDS

OUR_IDS = {f"{name}_id": id for name, id in SPECIAL_IDS.items()}


def sentencepiece_model(lines, vocab_size, **options):
    """The bytes of a model. options: those of the library's trainer."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        minloglevel=3,
        **options,
    )
    return model.getvalue()
