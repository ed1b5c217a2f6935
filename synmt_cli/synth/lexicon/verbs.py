"""Verbs, by frame: `english | german | sorts of subjects | sorts of complements | notes`.

entries.english_verb and german_verb say how the two are written. Notes: loud, careful, stative,
local, oneself (entries.Verb). The two verbs differ as the languages do: only one has a
preposition (look for, suchen), a particle (invite, einladen) or a reflexive (hurry, sich
beeilen), or German has a dative for the object (help, helfen).
"""

from synmt_cli.synth.lexicon.entries import Verb, english_verb, german_verb, mask

_VERBS = """
intransitive
  sleep slept slept | schlafen schläft schlief geschlafen | living | |
  laugh | lachen | person | | loud
  cry | weinen | person | | loud
  dance | tanzen | person | | careful
  sing sang sung | singen singt sang gesungen | person | | loud
  work | arbeiten | person | | careful
  swim swam swum | schwimmen schwimmt schwamm geschwommen *sein | living | |
  jump | springen springt sprang gesprungen *sein | living | |
  fall fell fallen | fallen fällt fiel gefallen *sein | living small | |
  disappear | verschwinden verschwindet verschwand verschwunden *sein | living goods | |
  burn | brennen brennt brannte gebrannt | building furniture vehicle | |
  arrive | an+kommen kommt kam gekommen *sein | person vehicle | |
  get got gotten +up | auf+stehen steht stand gestanden *sein | living | | local
  wake woke woken +up | auf+wachen *sein | living | |
  come came come +back | zurück+kommen kommt kam gekommen *sein | living | | local
  run ran run +away | weg+laufen läuft lief gelaufen *sein | living | | local
  give gave given +up | auf+geben gibt gab gegeben | person | | local
  hurry | sich beeilen | person | |
  apologize | sich entschuldigen | person | |
  relax | sich entspannen | living | |
  rest | sich aus+ruhen | living | |
  sit sat sat +down | sich hin+setzen | living | |
transitive
  see saw seen | sehen sieht sah gesehen | living | living goods building opening |
  hear heard heard | hören | living | living vehicle |
  know knew known | kennen kennt kannte gekannt | person | living text place event | stative
  love | lieben | person | living text place event | stative
  hate | hassen | person | living text place event | stative oneself
  visit | besuchen | person | person place |
  find found found | finden findet fand gefunden | living | small vehicle |
  read - read | lesen liest las gelesen | person | text | careful
  write wrote written | schreiben schreibt schrieb geschrieben | person | text | careful
  buy bought bought | kaufen | person | goods |
  sell sold sold | verkaufen | person | goods |
  eat ate eaten | essen isst aß gegessen | living | food | careful
  draw drew drawn | zeichnen | person | living place | careful
  carry | tragen trägt trug getragen | person | tool furniture | careful
  repair | reparieren | person | vehicle device furniture opening | careful
  wash | waschen wäscht wusch gewaschen | person | clothes vehicle animal | careful oneself
  watch | beobachten | living | living |
  steal stole stolen | stehlen stiehlt stahl gestohlen | person | small vehicle |
  hide hid hidden | verstecken | person | small | oneself
  forget forgot forgotten | vergessen vergisst vergaß vergessen | person | small topic |
  praise | loben | person | person | oneself
  bite bit bitten | beißen beißt biss gebissen | animal | living |
  build built built | bauen | person | building furniture | careful
  open | öffnen | person | opening | careful
  close | schließen schließt schloss geschlossen | person | opening | careful
  defend | verteidigen | person | living place | oneself
  protect | schützen | person | living place | oneself
  fear | sich fürchten vor:dat | living | living | stative
  remember | sich erinnern an:acc | person | living event text | stative
  pick +up | auf+heben hebt hob gehoben | person | small | careful
  throw threw thrown +away | weg+werfen wirft warf geworfen | person | small |
  turn +on | ein+schalten | person | device |
  turn +off | aus+schalten | person | device |
  put - put +on | an+ziehen zieht zog gezogen | person | clothes | careful
  take took taken +off | aus+ziehen zieht zog gezogen | person | clothes | careful
  take took taken +along | mit+nehmen nimmt nahm genommen | person | living tool |
  give gave given +back | zurück+geben gibt gab gegeben | person | small vehicle |
  bring brought brought +back | zurück+bringen bringt brachte gebracht | person | living small |
  call +up | an+rufen ruft rief gerufen | person | person |
  wake woke woken +up | auf+wecken | living | living | careful
  write wrote written +down | auf+schreiben schreibt schrieb geschrieben | person | matter | careful
  lock +up | ein+sperren | person | animal |
  clean +up | auf+räumen | person | home | careful
  invite | ein+laden lädt lud geladen | person | person |
  prepare | vor+bereiten bereitet bereitete bereitet | person | event food | careful
  wait / for | warten auf:acc | living | person vehicle |
  look / at | schauen auf:acc | living | living goods building |
  look / for | suchen | living | living small |
  pay paid paid / for | bezahlen | person | food tool clothes |
  think thought thought / of | denken denkt dachte gedacht an:acc | person | person topic |
  talk / about | reden über:acc | person | living topic | loud
  speak spoke spoken / with | sprechen spricht sprach gesprochen mit:dat | person | person | loud
  dream / of | träumen von:dat | person | living place event |
  laugh / at | lachen über:acc | person | living text | loud
  play / with | spielen mit:dat | living | living tool |
  fight fought fought / against | kämpfen gegen:acc | living | living |
  believe / in | glauben an:acc | person | person matter | stative
  complain / about | sich beschweren über:acc | person | person topic | loud
  care / for | sich kümmern um:acc | person | living |
  live / in | wohnen in:dat | person | home area | local stative
  sit sat sat / on | sitzen sitzt saß gesessen auf:dat | living | furniture | local
  lie lay lain / under | liegen liegt lag gelegen unter:dat | animal small | furniture | local
  stand stood stood / behind | stehen steht stand gestanden hinter:dat | living | building | local
  help | helfen hilft half geholfen +dat | person | living |
  follow | folgen *sein +dat | living | living vehicle |
  thank | danken +dat | person | person |
  trust | vertrauen +dat | person | person | stative oneself
  answer | antworten +dat | person | person | loud
  belong / to | gehören +dat | animal small vehicle building | person | stative
  listen / to | zu+hören +dat | person | person |
ditransitive
  give gave given | geben gibt gab gegeben | person | small |
  show showed shown | zeigen | person | text tool clothes place |
  send sent sent | schicken | person | text tool |
  bring brought brought | bringen bringt brachte gebracht | person | food tool |
  offer offered offered | an+bieten bietet bot geboten | person | food tool |
that
  say said said | sagen | person | |
  think thought thought | denken denkt dachte gedacht | person | |
  know knew known | wissen weiß wusste gewusst | person | | stative
  believe | glauben | person | | stative
  hope | hoffen | person | | stative
whether
  ask | fragen | person | |
  wonder | sich fragen | person | |
copular
  be was been | sein ist war gewesen *sein | | |
"""


def _verb(line: str, frame: str) -> Verb:
    english, german, subject, complement, notes = (part.strip() for part in line.split("|"))
    en, de = english_verb(english), german_verb(german)
    kinds = {
        "particle": bool(en.particle or de.prefix),
        "reflexive": de.reflexive,
        "dative": frame == "ditransitive" or (de.case == "Dat" and not de.preposition),
    }
    flags = notes.split()
    return Verb(
        english=en,
        german=de,
        frame=frame,
        subject=mask(subject),
        complement=mask(complement),
        kinds=frozenset(kind for kind, present in kinds.items() if present),
        manner=next((flag for flag in flags if flag in ("loud", "careful")), ""),
        stative="stative" in flags,
        local="local" in flags,
        oneself="oneself" in flags,
    )


def _read(table: str) -> tuple[Verb, ...]:
    verbs, frame = [], ""
    for line in table.strip().split("\n"):
        if line.startswith(" "):
            verbs.append(_verb(line, frame))
        else:
            frame = line
    return tuple(verbs)


VERBS = _read(_VERBS)
BE = next(verb for verb in VERBS if verb.frame == "copular")
