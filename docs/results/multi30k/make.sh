#!/usr/bin/env bash
# Makes the scores, the figure and the report page from the translations in this folder:
#
#   bash docs/results/multi30k/make.sh
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")"
buckets=(--by length:10,15,20 --by depth:3,4,5 --by distance:5,8,11
  --src source.txt --src-trees source.conllu.xz)
for kind in best mean; do
  systems=()
  for variant in vanilla pascal dep+rel rel gps struct-abs+struct-rel pascal+rel dep tags sisa; do
    for file in "$kind/$variant".?.txt; do systems+=("$variant=$file"); done
  done
  synmt score -j 0 -M bleu,chrf,ter "${buckets[@]}" --format json -o scores.json reference.txt \
    "${systems[@]}"
  synmt score --from-report scores.json -o "$kind/scores.txt"
done
synmt score -M bleu --by length:20 --src source.txt -o mean/length-20.txt reference.txt \
  "${systems[@]}"
synmt score -M bleu,chrf --by labels:../trees/en-de/phenomena.txt -o mean/phenomena.txt \
  reference.txt "${systems[@]}"
tuned=()
for file in mean/vanilla.?.lenpen.json; do tuned+=(--tuned "vanilla=$file"); done
synmt plot scores --metric bleu --by length:10,15,20 -o scores.svg scores.json
synmt report --title "Does syntax help? Multi30k English-German" --score scores.json \
  --src source.txt --ref reference.txt --src-trees source.conllu.xz "${tuned[@]}" -o report.html

# Further differences, BASELINE VARIANT
while read -r baseline variant; do
  systems=()
  for one in "$baseline" "$variant"; do
    for file in "mean/$one".?.txt; do systems+=("$one=$file"); done
  done
  synmt score -j 0 -M bleu,chrf,ter -o "mean/$variant-$baseline.txt" reference.txt "${systems[@]}"
done <<'pairs'
rel dep+rel
rel pascal+rel
pascal gps
pairs

for variant in pascal dep+rel gps struct-abs+struct-rel pascal+rel dep tags; do
  systems=()
  for file in "mean/$variant".?.txt; do systems+=("parsed=$file"); done
  for kind in light wrong-10 wrong-30 random labels; do
    for file in "right-trees/$variant".?."$kind".txt.xz; do systems+=("$kind=$file"); done
  done
  synmt score --matched -M bleu,chrf -o "right-trees/scores.$variant.txt" reference.txt "${systems[@]}"
done
