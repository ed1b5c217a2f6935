"""The sentencepiece models of records that name them only by fingerprint."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from synmt_cli.core.text.vocabulary import MODEL_LIMIT, Vocabularies, Vocabulary, fingerprint_of
from synmt_cli.errors import ConfigError, quoted, reason
from synmt_cli.io import regular_files

PATTERNS = ("*.model", "*.spm")


def find(fingerprint: str | None, folders: Sequence[Path]) -> Vocabularies:
    """The sentencepiece models of that fingerprint among the files of `folders`, by PATTERNS.

    Other files may have such names: those that are not regular files of a model's size, or cannot
    be read, are skipped. Raises ConfigError if none has the fingerprint: the user must name one.
    """
    if not fingerprint:
        raise ConfigError(
            "the records name no sentencepiece model: make them with synmt featurize --spm MODEL, "
            "or name the one of their pieces by --spm FILE"
        )
    wanted = fingerprint.split("+")
    vocabularies: dict[str, Vocabulary] = {}
    unread = ""
    for path in _files(folders):
        try:
            with regular_files.named(str(path), MODEL_LIMIT) as file:
                model = file.read()
        except (OSError, ValueError) as error:
            unread = unread or f"; {path} cannot be read ({reason(error)})"
            continue
        digest = fingerprint_of(model)
        if digest in wanted and digest not in vocabularies:
            vocabularies[digest] = Vocabulary(model, str(path))
    missing = [one for one in wanted if one not in vocabularies]
    if missing:
        raise ConfigError(
            f"no sentencepiece model with fingerprint {quoted(missing[0])} among the files "
            f"{' and '.join(PATTERNS)} next to the training records or here; name it by --spm FILE"
            f"{unread}"
        )
    return Vocabularies(vocabularies[wanted[0]], vocabularies[wanted[-1]])


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in dict.fromkeys(folders):
        yield from sorted(path for pattern in PATTERNS for path in folder.glob(pattern))
