"""Facts of English and German, checked on the features and forms of made trees."""

from itertools import product

import pytest
from support.synth_trees import made

ARTICLES = {
    ("Nom", "Masc"): "der",
    ("Acc", "Masc"): "den",
    ("Dat", "Masc"): "dem",
    ("Nom", "Fem"): "die",
    ("Acc", "Fem"): "die",
    ("Dat", "Fem"): "der",
    ("Nom", "Neut"): "das",
    ("Acc", "Neut"): "das",
    ("Dat", "Neut"): "dem",
    ("Nom", "Plur"): "die",
    ("Acc", "Plur"): "die",
    ("Dat", "Plur"): "den",
}
ENDLESS = ("ein", "kein", "mein", "sein", "ihr", "unser")
SUBORDINATE = ("advcl", "ccomp", "acl:relcl")


@pytest.fixture(scope="module")
def samples():
    return made(2000, mix=0.3) + made(400, seed=2, min_depth=2, max_depth=3)


@pytest.fixture(scope="module")
def german(samples):
    return [pair[1] for pair in samples]


def clause_of(word):
    """The head of the clause that the word is in."""
    while word.deprel not in (*SUBORDINATE, "root"):
        word = word.head
    return word


def agreement(subject):
    """Person and number of a subject; for `who` and `that`, of the antecedent."""
    if subject.feats.get("PronType") == "Rel" and "Number" not in subject.feats:
        subject = clause_of(subject).head
    return subject.feats.get("Person", "3"), subject.feats["Number"]


def column(word):
    return word.feats["Case"], "Plur" if word.feats["Number"] == "Plur" else word.feats["Gender"]


def test_finite_verbs_agree_with_their_subjects(samples):
    for pair in samples:
        for tree in pair:
            for top in tree.clauses("root", *SUBORDINATE):
                verb = tree.finite(top)
                if "Person" in verb.feats:  # English modals have none
                    said = verb.feats["Person"], verb.feats["Number"]
                    assert said == agreement(top.child("nsubj")), tree.text


def test_relative_pronouns_agree_with_their_antecedents(german):
    seen = set()
    for tree in german:
        for clause in tree.clauses("acl:relcl"):
            pronoun = next(word for word in clause.children if word.feats.get("PronType") == "Rel")
            for name in ("Gender", "Number"):
                assert pronoun.feats[name] == clause.head.feats[name], tree.text
            expected = ARTICLES[column(pronoun)]
            assert pronoun.form == ("denen" if column(pronoun) == ("Dat", "Plur") else expected)
            seen.add(column(pronoun))
    assert seen == {*ARTICLES}


def test_cases_follow_functions(german):
    cases = {"nsubj": "Nom", "obj": "Acc", "obl:arg": "Dat", "expl:pv": "Acc"}
    governed = {"Dat": "mit von neben hinter unter vor in", "Acc": "gegen um über"}
    seen = set()
    for tree in german:
        for word in tree.words:
            if word.deprel in cases:
                seen.add(word.deprel)
                assert word.feats["Case"] == cases[word.deprel], tree.text
            preposition = word.child("case")
            if preposition is not None:
                for case, prepositions in governed.items():
                    if preposition.lemma in prepositions.split():
                        seen.add(preposition.lemma)
                        assert word.feats["Case"] == case, tree.text
    assert seen == {*cases, *" ".join(governed.values()).split()}


def test_determiners_and_adjectives_agree_with_their_nouns(german):
    seen = set()
    for tree in german:
        for noun in tree.words:
            for word in noun.children:
                if word.deprel in ("det", "det:poss", "amod"):
                    seen.add((word.deprel, column(noun)))
                    for name in ("Case", "Gender", "Number"):
                        assert word.feats[name] == noun.feats[name], tree.text
                if word.feats.get("Definite") == "Def":
                    assert word.form.lower() == ARTICLES[column(noun)]
    assert seen >= {*product(("det", "amod"), ARTICLES), ("det:poss", ("Acc", "Masc"))}


def test_adjective_endings_follow_the_textbook(german):
    """The determiner shows the case or, where it has no ending, the adjective does."""
    shown = {form: form[1:].replace("ie", "e").replace("as", "es") for form in ARTICLES.values()}
    seen = set()
    for tree in german:
        for noun in tree.words:
            adjective, determiner = noun.child("amod"), noun.child("det", "det:poss")
            if adjective is None:
                continue
            case, gender = column(noun)
            bare = determiner is None or determiner.form.lower() in ENDLESS
            if bare or determiner.lemma == "einige":
                ending = shown[ARTICLES[case, gender]]
            else:
                direct = gender != "Plur" and (
                    case == "Nom" or (case, gender) in (("Acc", "Fem"), ("Acc", "Neut"))
                )
                ending = "e" if direct else "en"
            stem = {"teuer": "teur", "müde": "müd"}.get(adjective.lemma, adjective.lemma)
            assert adjective.form.lower() == stem + ending, tree.text
            seen.add((bare, case, gender))
    assert seen >= {(False, *one) for one in ARTICLES}
    assert (True, "Acc", "Plur") in seen


def test_the_verb_is_second_in_german_main_clauses(german):
    for tree in german:
        verb = tree.finite(tree.root)
        before = [
            word
            for word in tree.root.children
            if word.index < verb.index and word.deprel != "punct" and word is not verb
        ]
        assert len(before) == 1, tree.text
        assert all(
            word.index > verb.index
            for word in tree.root.children
            if word.deprel == "aux" and word is not verb
        )


def test_the_verb_is_last_in_german_subordinate_clauses(german):
    for tree in german:
        for top in tree.clauses(*SUBORDINATE):
            verb = tree.finite(top)
            after = [word for word in top.subtree() if word.index > verb.index]
            assert {word.deprel for word in after} <= {"punct"}, tree.text


def test_commas_enclose_german_subordinate_clauses(german):
    for tree in german:
        for top in tree.clauses(*SUBORDINATE):
            words = [word for word in top.subtree() if word.upos != "PUNCT"]
            first, last = words[0].index, words[-1].index
            assert first == 1 or tree.words[first - 2].form == ",", tree.text
            assert tree.words[last].form in (",", ".", "?"), tree.text


def test_prefixes_part_from_the_verb_in_main_clauses_only():
    apart = joined = 0
    for _, tree in made(800, names="particle,subordinate,relative,modal,perfect", mix=0.5):
        for word in tree.clauses("compound:prt"):
            apart += 1
            assert word.head is tree.root, tree.text
            rest = tree.words[word.index :]  # only clauses and marks follow it
            assert all(clause_of(w) is not tree.root or w.upos == "PUNCT" for w in rest), tree.text
        for top in tree.clauses(*SUBORDINATE):
            prefix = next(
                (p for p in ("an", "auf", "ein", "zurück") if top.lemma.startswith(p)), ""
            )
            if prefix and top.upos == "VERB" and top.lemma not in ("antworten",):
                joined += 1
                assert top.form.startswith(prefix), tree.text
                assert top.child("compound:prt") is None
    assert apart > 50
    assert joined > 50


def test_reflexives_agree_with_their_subjects(samples):
    forms, seen = {"Masc": "himself", "Fem": "herself", "Neut": "itself"}, set()
    for pair in samples:
        for tree in pair:
            for word in tree.words:
                if word.feats.get("Reflex"):
                    subject = clause_of(word).child("nsubj")
                    person, number = agreement(subject)
                    assert (word.feats["Person"], word.feats["Number"]) == (person, number)
                    seen.add(word.form)
                    if person == "3" and word.form != "sich":
                        expected = forms.get(word.feats.get("Gender"), "themselves")
                        assert word.form == expected, tree.text
    assert seen >= {"sich", "mich", *forms.values(), "themselves"}


def test_english_articles_follow_the_next_word(samples):
    seen = set()
    for english, _ in samples:
        for word, after in zip(english.words, english.words[1:], strict=False):
            if word.lemma == "a" and word.upos == "DET":
                assert (word.form.lower() == "an") == (after.form[0] in "aeiou"), english.text
                seen.add(word.form.lower())
    assert seen == {"a", "an"}


def test_the_object_stands_first_and_its_cue_is_true():
    def marked(word):
        if word.upos == "PRON":
            return word.form.lower() in ("ich", "er", "wir")
        return (word.upos, word.feats["Gender"], word.feats["Number"]) == ("NOUN", "Masc", "Sing")

    seen = set()
    for _, tree in made(600, names="object-first,object-first-ambiguous", mix=0):
        subject, obj = tree.root.child("nsubj"), tree.root.child("obj")
        assert obj.index < tree.finite(tree.root).index < subject.index
        by_case = marked(subject) or marked(obj)
        by_number = agreement(subject) != agreement(obj)
        assert (tree.cue == "case") == by_case, tree.text
        assert (tree.cue == "agreement") == (by_number and not by_case), tree.text
        is_marked = tree.cue in ("case", "agreement")
        assert tree.phenomena == {"object-first" if is_marked else "object-first-ambiguous"}
        assert ("object-first" in tree.ambiguous) == (not is_marked)
        seen.add(tree.cue)
    assert seen == {"case", "agreement", "sense", "none"}


def test_stranded_prepositions_follow_their_verb():
    for english, german in made(400, names="stranding,relative", mix=0.5):
        stranded = [w for w in english.clauses("case") if w.index > w.head.index]
        assert bool(stranded) == ("stranding" in english.phenomena)
        for word in stranded:
            assert word.head.index < word.head.head.index < word.index, english.text
        for word in german.clauses("case"):
            assert word.index < word.head.index, german.text


def test_agreement_has_a_noun_of_the_other_number_between():
    for pair in made(200, names="agreement", mix=0):
        for tree in pair:
            subject = tree.root.child("nsubj")
            attractor = subject.child("nmod")
            assert attractor.feats["Number"] != subject.feats["Number"]
            assert subject.index < attractor.index < tree.finite(tree.root).index
