#!/usr/bin/env bash
# Makes the scores and the figure from the translations in this folder:
#
#   bash docs/results/europarl-30000/make.sh
set -euo pipefail
cd "$(dirname "$0")"
systems=()
for variant in vanilla pascal dep+rel rel; do
  for file in "$variant".?.txt.xz; do systems+=("$variant=$file"); done
done
buckets=(--by length:10,20,30,40 --by depth:3,5,7 --by distance:5,10,20 --by nonprojective
  --src source.txt.xz --src-trees source.conllu.xz)
synmt score -M bleu,chrf "${buckets[@]}" -o scores.txt reference.txt.xz "${systems[@]}"
synmt score -M bleu "${buckets[@]}" --format json -o scores.json reference.txt.xz "${systems[@]}"
synmt plot scores --metric bleu --by length:10,20,30,40 -o scores.svg scores.json
rm scores.json
synmt score -M bleu,chrf "${buckets[@]}" -o dep+rel-rel.txt reference.txt.xz \
  rel=rel.{1,2,3}.txt.xz dep+rel=dep+rel.{1,2,3}.txt.xz
synmt score --matched -M bleu,chrf -o right-trees/scores.pascal.txt reference.txt.xz \
  parsed=pascal.{1,2,3}.txt.xz random=right-trees/pascal.{1,2,3}.random.txt.xz
