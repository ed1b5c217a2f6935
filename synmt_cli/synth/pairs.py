"""Sentence pairs by seed: drawn, said in both languages, numbered."""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from synmt_cli.errors import UsageError
from synmt_cli.synth.description import MeaningDescription
from synmt_cli.synth.english import realisation as english
from synmt_cli.synth.german import realisation as german
from synmt_cli.synth.sampling.sampler import meanings
from synmt_cli.synth.settings import SynthSettings
from synmt_cli.synth.tokens import MadeSentence

PATIENCE = 10_000  # pairs drawn in vain, one after another, before giving up


@dataclass(frozen=True, slots=True)
class MadePair:
    """One meaning in both languages. number: from 1, as in the files."""

    number: int
    english: MadeSentence
    german: MadeSentence
    description: MeaningDescription

    def side(self, language: str) -> MadeSentence:
        """The sentence in `en` or `de`."""
        return self.english if language == "en" else self.german

    def conllu(self, language: str) -> bytes:
        """The sentence as a CoNLL-U block, its empty line included."""
        sentence = self.side(language)
        head = f"# sent_id = {self.number}\n# text = {sentence.text}\n"
        return f"{head}{self.description.comments()}{sentence.rows()}\n".encode()


def digest(line: str) -> bytes:
    """Eight bytes that identify a line, the same in every process."""
    return blake2b(line.encode(), digest_size=8).digest()


def pairs(
    settings: SynthSettings,
    seed: int,
    n: int,
    unique: bool = False,
    excluded: Container[bytes] = frozenset(),
) -> Iterator[MadePair]:
    """Yields n pairs; a longer run begins with the same pairs.

    unique: no line repeats on either side. excluded: digests of lines that neither side may
    have. Memory is constant; with `unique` it grows by two digests a pair. Raises UsageError
    when no new pair can be drawn.
    """
    drawn = meanings(settings, seed)
    seen: set[bytes] = set()
    made = vain = 0
    while made < n:
        clause, description = next(drawn)
        pair = MadePair(made + 1, english.realise(clause), german.realise(clause), description)
        if unique or excluded:
            digests = [digest(pair.english.text), digest(pair.german.text)]
            if any(item in seen or item in excluded for item in digests):
                vain += 1
                if vain == PATIENCE:
                    raise UsageError(
                        f"no new pair in {PATIENCE:,} tries after {made:,}: allow more "
                        "--phenomena, a greater --depth or a smaller -n"
                    )
                continue
            if unique:
                seen.update(digests)
        made, vain = made + 1, 0
        yield pair
