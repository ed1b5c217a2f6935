"""Language identification, by py3langid: a naive Bayes model of 139 languages.

Lui and Baldwin (2012), "langid.py: An Off-the-shelf Language Identification Tool", as
retrained by py3langid; the model is part of the package. The library normalises to NFC, and
puts text all in capitals in lower case. The same text always gives the same answer.

Without thresholds the rule is the filter of Bugliarello and Okazaki (2020): the likeliest
language of both sides must be the expected one, and text without evidence for any language is
wrong (their langdetect raises an error there). Choshen and Abend (2021) take langid.py.

Probabilities are the library's: a softmax of the scores divided by the square root of the
number of bytes, so that long lines are not all certain.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from synmt_cli.core.filtering.pairs import SIDES
from synmt_cli.errors import UsageError, quoted

NO_LANGUAGE = "zxx"  # the library's name for text without linguistic content
LONGEST = 10_000  # characters; the rest of a longer line is not looked at
_CODES = re.compile(r"([a-z]{2,3})(?:-([a-z]{2,3}))?")


class Languages:
    """Whether the likeliest language of each side is the expected one.

    codes: the languages of both sides, `SRC-TGT`, or of the source alone, `SRC`. probability:
    the least that the expected language must have. sure: the least that another language must
    have to count; above 0, a text without a language passes too. Raises UsageError.
    """

    name = "lang"

    def __init__(self, codes: str, probability: float = 0.0, sure: float = 0.0) -> None:
        if not (match := _CODES.fullmatch(codes)):
            raise UsageError(f"--lang takes SRC-TGT, such as de-en, or SRC: not {quoted(codes)}")
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self.codes = tuple(code for code in match.groups() if code is not None)
        self._probability, self._sure = probability, sure
        self._model: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        labels = Counter(self._model.nb_classes)
        for code in self.codes:
            if code not in labels:
                raise UsageError(f"--lang {codes}: {code} is none of py3langid's languages")
        # The probability of a language (some have two classes) in a text without evidence.
        self._nothing = 1.001 * max(labels.values()) / labels.total()

    def identify(self, text: str) -> tuple[str, float]:
        """The likeliest language and its probability; "" for a text without evidence.

        Digits, punctuation and very short words alone are no evidence: all languages are then
        equally likely, and the first one that the library names means nothing.
        """
        language, probability = self._model.classify(text[:LONGEST])
        is_none = language == NO_LANGUAGE or probability <= self._nothing
        return ("", 0.0) if is_none else (language, probability)

    def problem(self, texts: Sequence[str]) -> str:
        """What is wrong with the first side that is not as expected, "" if all sides are.

        texts: at least one for each code.
        """
        for side, code, text in zip(SIDES, self.codes, texts, strict=False):
            language, probability = self.identify(text)
            if language == code:
                if probability < self._probability:
                    return f"{side} is {language} with {probability:.2f} only"
            elif probability >= self._sure:
                is_what = f"is {language} ({probability:.2f})" if language else "has no language"
                return f"{side} {is_what}"
        return ""
