"""Pronouns, nouns and names.

Nouns are written `english[/plural] gender german/plural [weak]`, under the sort they belong to.
A regular English plural is left out. A person is `he`, `she` or `it` by the gender of the German
word, unless the entry says otherwise (das Mädchen, but she). No noun has an English plural like
its singular, and no two share a word in either language.
"""

from synmt_cli.synth.lexicon.entries import PERSON, SORT, Noun, Pronoun, with_s

GENDERS = {"m": "Masc", "f": "Fem", "n": "Neut"}

ME = Pronoun(("I", "me", "myself", "my"), ("ich", "mich", "mir", "mein"), 1, "Sing", "")
WE = Pronoun(("we", "us", "ourselves", "our"), ("wir", "uns", "uns", "unser"), 1, "Plur", "")
HE = Pronoun(("he", "him", "himself", "his"), ("er", "ihn", "ihm", "sein"), 3, "Sing", "Masc")
SHE = Pronoun(("she", "her", "herself", "her"), ("sie", "sie", "ihr", "ihr"), 3, "Sing", "Fem")
IT = Pronoun(("it", "it", "itself", "its"), ("es", "es", "ihm", "sein"), 3, "Sing", "Neut")
THEY = Pronoun(
    ("they", "them", "themselves", "their"), ("sie", "sie", "ihnen", "ihr"), 3, "Plur", ""
)
BY_GENDER = {"Masc": HE, "Fem": SHE, "Neut": IT}

_NAMES = {"Masc": "Peter Paul Max Thomas", "Fem": "Anna Maria Julia Clara"}

_NOUNS = """
person
  man/men m Mann/Männer; boy m Junge/Jungen weak; father m Vater/Väter; brother m Bruder/Brüder;
  teacher m Lehrer/Lehrer; doctor m Arzt/Ärzte; student m Student/Studenten weak;
  neighbor m Nachbar/Nachbarn weak; farmer m Bauer/Bauern weak; king m König/Könige;
  judge m Richter/Richter; friend m Freund/Freunde; woman/women f Frau/Frauen;
  mother f Mutter/Mütter; sister f Schwester/Schwestern; daughter f Tochter/Töchter;
  queen f Königin/Königinnen; actress f Schauspielerin/Schauspielerinnen;
  waitress f Kellnerin/Kellnerinnen; lady f Dame/Damen; child/children n Kind/Kinder;
  girl n Mädchen/Mädchen she
animal
  dog m Hund/Hunde; bird m Vogel/Vögel; bear m Bär/Bären weak; fox m Fuchs/Füchse;
  lion m Löwe/Löwen weak; cat f Katze/Katzen; mouse/mice f Maus/Mäuse; cow f Kuh/Kühe;
  goat f Ziege/Ziegen; horse n Pferd/Pferde; rabbit n Kaninchen/Kaninchen
text
  letter m Brief/Briefe; report m Bericht/Berichte; book n Buch/Bücher; poem n Gedicht/Gedichte;
  story f Geschichte/Geschichten
food
  apple m Apfel/Äpfel; cake m Kuchen/Kuchen; egg n Ei/Eier; orange f Orange/Orangen;
  potato f Kartoffel/Kartoffeln; sausage f Wurst/Würste
tool
  key m Schlüssel/Schlüssel; umbrella m Regenschirm/Regenschirme; ball m Ball/Bälle;
  ring m Ring/Ringe; bag f Tasche/Taschen; box f Kiste/Kisten; bottle f Flasche/Flaschen;
  knife/knives n Messer/Messer; picture n Bild/Bilder; gift n Geschenk/Geschenke
clothes
  hat m Hut/Hüte; coat m Mantel/Mäntel; shoe m Schuh/Schuhe; jacket f Jacke/Jacken;
  shirt n Hemd/Hemden
device
  computer m Computer/Computer; lamp f Lampe/Lampen; machine f Maschine/Maschinen;
  radio/radios n Radio/Radios
vehicle
  train m Zug/Züge; bus m Bus/Busse; car n Auto/Autos; bicycle n Fahrrad/Fahrräder
furniture
  table m Tisch/Tische; chair m Stuhl/Stühle; bed n Bett/Betten; sofa/sofas n Sofa/Sofas
home
  tower m Turm/Türme; house n Haus/Häuser; hotel n Hotel/Hotels; castle n Schloss/Schlösser
institution
  school f Schule/Schulen; church f Kirche/Kirchen; library f Bibliothek/Bibliotheken;
  hospital n Krankenhaus/Krankenhäuser
area
  garden m Garten/Gärten; forest m Wald/Wälder; city f Stadt/Städte; village n Dorf/Dörfer
opening
  door f Tür/Türen; window n Fenster/Fenster; gate n Tor/Tore
event
  film m Film/Filme; party f Feier/Feiern; journey f Reise/Reisen; concert n Konzert/Konzerte
matter
  plan m Plan/Pläne; question f Frage/Fragen; answer f Antwort/Antworten;
  problem n Problem/Probleme
"""


def _noun(text: str, sort: str) -> Noun:
    english, gender, german, *notes = text.split()
    singular, _, plural = english.partition("/")
    one, _, many = german.partition("/")
    natural = GENDERS[gender] if sort == "person" else "Neut"
    return Noun(
        english=(singular, plural or with_s(singular)),
        german=(one, many),
        gender=GENDERS[gender],
        pronoun=SHE if "she" in notes else BY_GENDER[natural],
        sort=SORT[sort],
        weak="weak" in notes,
    )


def _read(table: str) -> tuple[Noun, ...]:
    nouns: list[Noun] = []
    sort, entries = "", ""
    for line in [*table.strip().split("\n"), "end"]:
        if line.startswith(" "):
            entries += line
            continue
        nouns += [_noun(entry, sort) for entry in entries.split(";") if entry.strip()]
        sort, entries = line, ""
    return tuple(nouns)


NOUNS = _read(_NOUNS)
NAMES = tuple(
    Noun((name, ""), (name, ""), gender, BY_GENDER[gender], PERSON)
    for gender, names in _NAMES.items()
    for name in names.split()
)
