#!/usr/bin/env bash
# Makes the scores of one direction from the translations in its folder:
#
#   bash docs/results/trees/make.sh en-de
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")/$1"
systems=()
for variant in vanilla linearized bitran parent gcn; do
  for file in "$variant".?.txt*; do systems+=("$variant=$file"); done
done
buckets=(--by length:10,15,20 --by distance:5,8,11)
if [ "$1" = fr-en ]; then buckets=(--by length:20,30,40 --by distance:10,20,30); fi # long sentences
synmt challenge --phenomenon particle --phenomenon reflexive --phenomenon preposition-stranding \
  --format labels -o phenomena.txt reference.conllu.xz
synmt score -j 0 -M bleu,chrf,ter --src source.txt* --ref-trees reference.conllu.xz "${buckets[@]}" \
  --by labels:phenomena.txt -o scores.txt reference.txt* "${systems[@]}"
cat scores.txt
