"""Language identification of lines whose language is known."""

import pytest

from synmt_cli.core.filtering.languages import Languages
from synmt_cli.errors import UsageError

ENGLISH = "A young girl is reading a book in the garden."
GERMAN = "Ein junges Mädchen liest im Garten ein Buch."
FRENCH = "Une jeune fille lit un livre dans le jardin."
NOTHING = ("", "  ", "12.5", "...", "@@", "A", "1234567890", "3.14159265358979323846264338")


@pytest.fixture(scope="module")
def model():
    return Languages("en-de")


def test_the_likeliest_language_of_both_sides_counts(model):
    assert model.problem((ENGLISH, GERMAN)) == ""
    assert model.problem((ENGLISH.upper(), GERMAN.upper())) == ""
    assert model.problem((FRENCH, GERMAN)).startswith("source is fr (")
    assert model.problem((ENGLISH, FRENCH)).startswith("target is fr (")
    assert model.problem((GERMAN, ENGLISH)).startswith("source is de (")


@pytest.mark.parametrize("text", NOTHING)
def test_a_text_without_evidence_has_no_language(model, text):
    assert model.identify(text) == ("", 0.0)
    assert model.problem((text, GERMAN)) == "source has no language"
    assert model.problem((ENGLISH, text)) == "target has no language"


def test_no_language_is_expected_where_the_library_would_name_its_first():
    """Serbian has two classes in the model, so it is first where nothing is known."""
    serbian = Languages("sr")
    assert [serbian.problem((text,)) for text in NOTHING] == ["source has no language"] * len(
        NOTHING
    )
    assert serbian.problem(("Девојка чита књигу у башти.",)) == ""


def test_one_code_looks_at_the_source_alone():
    assert Languages("en").problem((ENGLISH, FRENCH)) == ""


def test_thresholds_of_the_expected_and_of_another_language(model):
    assert Languages("en-de", probability=0.999).problem((ENGLISH, "Haus")) == (
        f"source is en with {model.identify(ENGLISH)[1]:.2f} only"
    )
    sure = Languages("en-de", sure=0.5)
    assert sure.problem((ENGLISH, "He continued:")) == sure.problem(("12", "...")) == ""
    assert model.problem((ENGLISH, "He continued:")).startswith("target is ")
    assert sure.problem((ENGLISH, FRENCH)).startswith("target is fr")


@pytest.mark.parametrize("codes", ["", "english", "en-", "-de", "en_de", "EN-DE", "en-de-fr", "xx"])
def test_codes_are_those_of_the_library(codes):
    with pytest.raises(UsageError, match="--lang"):
        Languages(codes)
