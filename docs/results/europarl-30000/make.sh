#!/usr/bin/env bash
# Makes the scores and the figure from the translations in this folder:
#
#   bash docs/results/europarl-30000/make.sh [PARTUT_REFERENCE]
#
# PARTUT_REFERENCE: the French sentences of ParTUT, one a line, which are not in this folder; without
# them gold-trees is left as it is.
set -euo pipefail
partut=${1:+$(realpath "$1")}
cd "$(dirname "$0")"
# NAME=FILE of each seed's translations: $(seeds NAME VARIANT [FOLDER/] [.TREES])
own="1 2 3"
seeds() {
  local seed
  for seed in $own; do echo "$1=${3:-}$2.$seed${4:-}.txt.xz"; done
}
systems() {
  local variant
  for variant; do seeds "$variant" "$variant"; done
}
buckets=(--by length:10,20,30,40 --by depth:3,5,7 --by distance:5,10,20 --by nonprojective
  --src source.txt.xz --src-trees source.conllu.xz)

all=$(systems vanilla pascal dep+rel rel gps struct-abs+struct-rel pascal+rel dep tags sisa)
synmt score -j 0 -M bleu,chrf,ter "${buckets[@]}" --format json -o scores.json reference.txt.xz $all
synmt score --from-report scores.json -o scores.txt
synmt plot scores --metric bleu --by length:10,20,30,40 -o scores.svg scores.json
rm scores.json
synmt score -M bleu --by length:20 --src source.txt.xz -o length-20.txt reference.txt.xz $all

# Further differences, BASELINE VARIANT
while read -r baseline variant; do
  synmt score -j 0 -M bleu,chrf,ter "${buckets[@]}" -o "$variant-$baseline.txt" reference.txt.xz \
    $(systems "$baseline" "$variant")
done <<'pairs'
rel dep+rel
rel struct-abs+struct-rel
rel pascal+rel
dep+rel pascal+rel
pascal gps
pairs

# Trained with random or borrowed trees, against what reads the same without a tree
while read -r trees baseline variant; do
  synmt score -j 0 -M bleu,chrf,ter "${buckets[@]}" -o "$trees-trees/$variant-$trees.txt" \
    reference.txt.xz $(seeds "$trees" "$variant" "$trees-trees/") $(seeds "$variant" "$variant")
  synmt score -j 0 -M bleu,chrf,ter "${buckets[@]}" -o "$trees-trees/$trees-$variant-$baseline.txt" \
    reference.txt.xz $(seeds "$baseline" "$baseline") $(seeds "$trees" "$variant" "$trees-trees/")
done <<'pairs'
random rel dep+rel
random vanilla struct-abs+struct-rel
borrowed rel dep+rel
pairs
synmt score -j 0 -M bleu,chrf,ter -o borrowed-trees/borrowed-random.txt reference.txt.xz \
  $(seeds random dep+rel random-trees/) $(seeds borrowed dep+rel borrowed-trees/)
synmt score -j 0 --matched -M bleu,chrf,ter -o borrowed-trees/reads.txt reference.txt.xz \
  $(seeds borrowed dep+rel borrowed-trees/) \
  $(for kind in parsed random; do seeds $kind dep+rel borrowed-trees/ .$kind; done)

# Further seeds of rel, and of dep+rel with the parser's and with borrowed trees, which were trained
# later: alone, and with the first three
for own in "4 5" "1 2 3 4 5"; do
  synmt score -j 0 --all-pairs -M bleu,chrf,ter -o "borrowed-trees/seeds-${own// /-}.txt" \
    reference.txt.xz $(seeds rel rel) $(seeds borrowed dep+rel borrowed-trees/) $(systems dep+rel)
done
own="1 2 3 4 5"
of_rel=$(seeds rel rel)
own="1 2 3"
synmt score -M bleu -o random-trees/random-dep+rel-rel-5.txt reference.txt.xz $of_rel \
  $(seeds random dep+rel random-trees/)

# How wide intervals are, by seeds and test sentences
python3 widths.py > widths.tsv

# Relative positions in the encoder alone
for baseline in vanilla struct-abs+struct-rel rel; do
  synmt score -j 0 -M bleu,chrf,ter "${buckets[@]}" -o "rel-encoder/rel-encoder-$baseline.txt" \
    reference.txt.xz $(seeds "$baseline" "$baseline") $(seeds rel-encoder rel rel-encoder/)
done

# After 12,000 updates, on all 3,000 sentences and on the first 1,000, which all others translate
first=$(mktemp -d)
for file in 12000-updates/*.txt.xz; do xz -dc "$file" | sed -n 1,1000p | xz > "$first/${file#*/}"; done
# The French sentences and the English ones with their trees, which trees/fr-en has the other way round
french=../trees/fr-en/source.txt.xz
english=(--src ../trees/fr-en/reference.txt.xz --src-trees ../trees/fr-en/reference.conllu.xz)
longer_systems() {
  local variant
  for variant; do seeds "$variant" "$variant" 12000-updates/; done
}
longer() { # NAME SYSTEM...
  longer_of "$1" "$(longer_systems "${@:2}")"
}
longer_of() { # NAME OUTPUTS
  local name=$1 outputs=$2
  synmt score -j 0 -M bleu,chrf,ter "${buckets[@]::6}" "${english[@]}" -o "12000-updates/$name.txt" \
    "$french" $outputs
  synmt score -M bleu,chrf,ter -o "12000-updates/$name-1000.txt" reference.txt.xz \
    ${outputs//12000-updates/$first}
}
longer dep+rel-rel rel dep+rel
for own in 1 2 3; do # each seed alone
  synmt score -M bleu -o "12000-updates/dep+rel-rel.$own.txt" "$french" \
    $(longer_systems rel dep+rel)
done
own="1 2 3"
longer rel-vanilla vanilla rel dep+rel
longer pascal+rel-rel rel pascal+rel
longer struct-abs+struct-rel-vanilla vanilla struct-abs+struct-rel
longer pascal-vanilla vanilla pascal
longer gps-vanilla vanilla gps
longer gps-pascal pascal gps
longer dep-vanilla vanilla dep
longer tags-vanilla vanilla tags
longer sisa-vanilla vanilla sisa
random=$(seeds random struct-abs+struct-rel 12000-updates/ .random) # trained with such trees
longer_of struct-abs+struct-rel-random "$random $(longer_systems struct-abs+struct-rel)"
longer_of random-struct-abs+struct-rel-vanilla "$(longer_systems vanilla) $random"
flat=$(seeds flat struct-abs+struct-rel 12000-updates/ .flat) # all words hang from the first one
longer_of flat-struct-abs+struct-rel-vanilla "$(longer_systems vanilla) $flat"
longer_of struct-abs+struct-rel-random-flat "$flat $random"
longer_of struct-abs+struct-rel-flat "$flat $(longer_systems struct-abs+struct-rel)"
flat=$(seeds flat gps 12000-updates/ .flat)
longer_of flat-gps-vanilla "$(longer_systems vanilla) $flat"
longer_of gps-flat "$flat $(longer_systems gps)"
for own in 4 "1 2 3 4"; do # a fourth seed, trained later: alone, and with the first three
  synmt score -M bleu -o "12000-updates/gps-flat.${own// /-}.txt" "$french" \
    $(seeds flat gps 12000-updates/ .flat) $(longer_systems gps)
done
own="1 2" # with shallow trees: all words hang from the root and keep their labels
shallow=$(seeds shallow gps 12000-updates/ .shallow)
own="1 2 3 4"
longer_of gps-shallow "$shallow $(longer_systems gps)"
longer_of gps-shallow-flat "$(seeds flat gps 12000-updates/ .flat) $shallow"
for own in "3 4" "1 2 3 4"; do # two further seeds, trained later: alone, and with the first two
  shallow=$(seeds shallow gps 12000-updates/ .shallow)
  synmt score -M bleu,chrf -o "12000-updates/gps-shallow.${own// /-}.txt" "$french" \
    $shallow $(longer_systems gps)
  synmt score -M bleu,chrf -o "12000-updates/gps-shallow-flat.${own// /-}.txt" "$french" \
    $(seeds flat gps 12000-updates/ .flat) $shallow
done
own="1 2 3"
own="1 2" # a combination that was tried later
two=$(longer_systems gps+rel)
own="1 2 3"
three=$(longer_systems gps+rel) # with its third seed, which was trained last
for baseline in rel dep+rel; do
  longer_of "gps+rel-$baseline" "$(longer_systems "$baseline") $two"
  longer_of "gps+rel-$baseline.1-2-3" "$(longer_systems "$baseline") $three"
done
synmt score -M bleu,chrf -o 12000-updates/gps+rel-gps-vanilla.txt "$french" \
  $(longer_systems vanilla gps) $two
synmt score -M bleu,chrf -o 12000-updates/gps+rel-gps-vanilla.1-2-3.txt "$french" \
  $(longer_systems vanilla gps) $three
synmt score -M bleu --by length:20 "${english[@]::2}" -o 12000-updates/pascal-vanilla-20.txt \
  "$french" $(longer_systems vanilla pascal)
outputs=$(longer_systems vanilla pascal dep gps struct-abs+struct-rel rel pascal+rel dep+rel tags sisa)
synmt score -j 0 -M bleu,chrf -o 12000-updates/all-vanilla.txt "$french" $outputs
synmt score -M bleu -o 12000-updates/all-vanilla-1000.txt reference.txt.xz \
  ${outputs//12000-updates/$first}
rm -r "$first"

# The same models with other trees: random ones, and for tags, which reads labels alone, wrong labels;
# and on ParTUT the parser's, gold and random ones
synmt score --matched -M bleu,chrf -o right-trees/scores.tags.txt reference.txt.xz \
  $(seeds parsed tags) $(seeds wrong tags right-trees/ .labels)
for variant in pascal gps struct-abs+struct-rel pascal+rel dep; do
  synmt score --matched -M bleu,chrf -o "right-trees/scores.$variant.txt" reference.txt.xz \
    $(seeds parsed "$variant") $(seeds random "$variant" right-trees/ .random)
done
[ -n "$partut" ] || exit 0
synmt score --matched -M bleu,chrf -o gold-trees/scores.tags.txt - \
  $(for kind in parsed gold; do seeds $kind tags gold-trees/ .$kind; done) < "$partut"
for variant in dep gps struct-abs+struct-rel pascal+rel; do
  synmt score --matched -M bleu,chrf -o "gold-trees/scores.$variant.txt" - \
    $(for kind in parsed gold random; do seeds $kind "$variant" gold-trees/ .$kind; done) < "$partut"
done
