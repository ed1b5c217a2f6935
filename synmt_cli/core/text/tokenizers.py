"""sacreBLEU's tokenizers, which split text into the words of BLEU."""

from __future__ import annotations

import os
import typing
from typing import TYPE_CHECKING, Any, Literal

from synmt_cli.errors import Unavailable, UsageError, quoted

if TYPE_CHECKING:
    from sacrebleu import BLEU

# sacreBLEU's `spm` is flores101 by an older name.
Tokenizer = Literal[
    "13a",
    "none",
    "char",
    "intl",
    "zh",
    "ja-mecab",
    "ko-mecab",
    "flores101",
    "flores200",
    "spBLEU-1K",
]
TOKENIZERS: tuple[str, ...] = typing.get_args(Tokenizer)
DEFAULT: Tokenizer = "13a"
BY_SPACES = ("13a", "none", "intl")  # those whose words have spaces or punctuation between them
EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}  # tokenizer: extra of the package sacrebleu


def check(tokenize: str) -> None:
    """Raises UsageError for an unknown tokenizer."""
    if tokenize not in TOKENIZERS:
        raise UsageError(f"no tokenizer {quoted(tokenize)}; there are {', '.join(TOKENIZERS)}")


def bleu(tokenize: str, **options: Any) -> BLEU:
    """A BLEU with that tokenizer.

    Raises UsageError for an unknown one, Unavailable if its package or model is missing.
    """
    check(tokenize)

    from sacrebleu import BLEU
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if tokenize in SPM_MODELS:
        url = SPM_MODELS[tokenize]["url"]
        path = os.path.join(SACREBLEU_DIR, "models", os.path.basename(url))
        if not os.path.exists(path):  # sacreBLEU would download it; synmt uses no network
            raise Unavailable(f"tokenizer {tokenize} needs a model: download {url} to {path}")
    try:
        # force: the command warns of text that looks tokenized, not the library.
        return BLEU(tokenize=tokenize, force=True, **options)
    except (ImportError, RuntimeError, OSError) as error:
        if tokenize in EXTRAS:
            install = f"pip install 'sacrebleu[{EXTRAS[tokenize]}]'"
            raise Unavailable(f"tokenizer {tokenize} needs a package: {install}") from error
        raise Unavailable(f"tokenizer {tokenize}: {error}") from error
